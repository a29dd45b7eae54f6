// NVIDIA GPUs in the runtime's list of devices.
#ifndef PARTITA_RUNTIME_CUDA_CUDA_KIND_H_
#define PARTITA_RUNTIME_CUDA_CUDA_KIND_H_

#include "runtime/device/device_kind.h"

namespace partita::cuda {

// Runs code for "cuda:sm_XX". Ranks that are threads of this process and use
// one GPU exchange tensors in its memory. Ranks with a GPU each use NCCL if it
// is installed for all of them. Other ranks exchange through host memory.
device::DeviceKind CudaKind();

}  // namespace partita::cuda

#endif  // PARTITA_RUNTIME_CUDA_CUDA_KIND_H_
