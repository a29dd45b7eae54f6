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

// Prepares a forward convolution or one of its gradients. Our own kernel adds
// bias, activation and residual afterwards, to a result already rounded to its
// type. Engines that round inputs (TF32 for f32) or that sum in a
// nondeterministic order are not used. `dnn` must outlive the result.
// Unimplemented, with the library's reason, if no engine fits.
absl::StatusOr<std::unique_ptr<CudaOp>> MakeDnnConv(
    const Dnn& dnn, std::shared_ptr<const OwnKernels> kernels, Tuner& tuner,
    const device::ConvDesc& desc);

}  // namespace partita::cuda

#endif  // PARTITA_RUNTIME_CUDA_CONV_H_
