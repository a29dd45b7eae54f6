// Products by cuBLASLt.
#ifndef PARTITA_RUNTIME_CUDA_GEMM_H_
#define PARTITA_RUNTIME_CUDA_GEMM_H_

#include <memory>

#include "absl/status/statusor.h"
#include "runtime/cuda/blas.h"
#include "runtime/cuda/library_op.h"
#include "runtime/cuda/own_ops.h"
#include "runtime/cuda/tuner.h"
#include "runtime/device/operations.h"

namespace partita::cuda {

// Unimplemented if the library has no such product; our own kernel computes it
// then. `blas` must outlive the result. `tuner` chooses the algorithm.
// `unfinished` is the library's reason if it multiplies only, and an own kernel
// computes the activation or the sums; otherwise it is ok.
absl::StatusOr<std::unique_ptr<CudaOp>> MakeBlasProduct(
    const Blas& blas, std::shared_ptr<const OwnKernels> kernels, Tuner& tuner,
    const device::GemmDesc& desc, absl::Status& unfinished);

}  // namespace partita::cuda

#endif  // PARTITA_RUNTIME_CUDA_GEMM_H_
