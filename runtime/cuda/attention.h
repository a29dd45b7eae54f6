// Attention by cuDNN, where it is faster than the compiler's kernel.
#ifndef PARTITA_RUNTIME_CUDA_ATTENTION_H_
#define PARTITA_RUNTIME_CUDA_ATTENTION_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/cuda/dnn.h"
#include "runtime/cuda/library_op.h"
#include "runtime/cuda/module.h"
#include "runtime/cuda/tuner.h"
#include "runtime/device/device.h"
#include "runtime/device/operations.h"

namespace partita::cuda {

// The launch of the compiler's kernel, and the sizes of its operands.
struct AttentionLaunch {
  const CudaKernel& kernel;
  device::LaunchShape shape;
  std::vector<int64_t> operand_bytes;
};

// True if the tuner's file names the launch as the fastest.
bool IsLaunchKept(const Dnn& dnn, const Tuner& tuner,
                  const device::AttentionDesc& desc,
                  const AttentionLaunch& launch);

// Returns null if `may_launch` and the launch is faster, or if the tuner has no
// time left to prepare plans and its file names none. Unimplemented if the
// library does not compute the attention. `dnn`, the kernel and the shape's
// maps must outlive the result, which launches the kernel for operands that are
// not aligned.
absl::StatusOr<std::unique_ptr<CudaOp>> MakeDnnAttention(
    const Dnn& dnn, Tuner& tuner, const device::AttentionDesc& desc,
    AttentionLaunch launch, bool may_launch);

}  // namespace partita::cuda

#endif  // PARTITA_RUNTIME_CUDA_ATTENTION_H_
