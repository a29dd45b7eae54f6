// Convolutions by cuDNN.
#ifndef PARTITA_RUNTIME_CUDA_CONV_H_
#define PARTITA_RUNTIME_CUDA_CONV_H_

#include <memory>

#include "absl/status/statusor.h"
#include "runtime/cuda/dnn.h"
#include "runtime/cuda/library_op.h"
#include "runtime/cuda/own_ops.h"
#include "runtime/cuda/tuner.h"
#include "runtime/device/operations.h"

namespace partita::cuda {

// Forward and both gradients; bias, activation and residual by a kernel of ours
// behind it, on a result that was rounded to its type before. Engines that
// round what they are given (TF32 for f32) or whose sums come out in another
// order each time are not taken. `dnn` outlives the result. Unimplemented, with
// the library's reason, where it has nothing that fits.
absl::StatusOr<std::unique_ptr<CudaOp>> MakeDnnConv(
    const Dnn& dnn, std::shared_ptr<const OwnKernels> kernels, Tuner& tuner,
    const device::ConvDesc& desc);

}  // namespace partita::cuda

#endif  // PARTITA_RUNTIME_CUDA_CONV_H_
