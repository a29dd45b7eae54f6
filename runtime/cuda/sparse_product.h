// Products with weights of the 2:4 pattern, by cuSPARSELt.
#ifndef PARTITA_RUNTIME_CUDA_SPARSE_PRODUCT_H_
#define PARTITA_RUNTIME_CUDA_SPARSE_PRODUCT_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/cuda/library_op.h"
#include "runtime/cuda/sparse.h"
#include "runtime/cuda/tuner.h"
#include "runtime/device/operations.h"

namespace partita::cuda {

// True if cuSPARSELt can compute a product of this kind and the weight, which
// is on the GPU, has the 2:4 pattern along k. Reads the weight until it finds
// a group of four that breaks the pattern, or a `sample` of about 4 MB.
// `constants` is as in Device::PrepareGemm.
absl::StatusOr<bool> HasTwoOfFourWeight(
    const device::GemmDesc& desc, const std::vector<const void*>& constants,
    const Context& context, bool sample);

// Compresses the weight. Takes `dense`, the same product, on success only: it
// runs where operands are not aligned to 16 bytes. Unimplemented if the library
// has no such product, or if less than an eighth of the GPU's memory would be
// free beside the compressed weight.
absl::StatusOr<std::unique_ptr<CudaOp>> MakeSparseProduct(
    const Sparse& sparse, std::shared_ptr<Context> context, Tuner& tuner,
    const device::GemmDesc& desc, const std::vector<const void*>& constants,
    std::unique_ptr<CudaOp>& dense);

}  // namespace partita::cuda

#endif  // PARTITA_RUNTIME_CUDA_SPARSE_PRODUCT_H_
