// The runtime's own kernels for the CPU, recording their accesses. Their
// functions have internal linkage, because the rest of the process has versions
// that record nothing.
#ifndef PARTITA_RUNTIME_CUDA_RECORDING_TOUCHED_KERNELS_H_
#define PARTITA_RUNTIME_CUDA_RECORDING_TOUCHED_KERNELS_H_

#include <cmath>

#include "runtime/cuda/recording/queue.h"

#define PARTITA_KERNEL_CODE [[maybe_unused]] static inline
#define PARTITA_KERNEL_READS(memory, bytes) \
  ::partita::cuda::recording::Machine::Get().Touch(memory, bytes, false)
#define PARTITA_KERNEL_WRITES(memory, bytes) \
  ::partita::cuda::recording::Machine::Get().Touch(memory, bytes, true)

#include "runtime/cuda/own_kernels.h"

#endif  // PARTITA_RUNTIME_CUDA_RECORDING_TOUCHED_KERNELS_H_
