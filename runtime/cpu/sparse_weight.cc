// Tries the forms of sparse weights.
#include "runtime/cpu/sparse_weight.h"

#include <functional>
#include <vector>

#include "runtime/base/status_macros.h"
#include "runtime/cpu/row_product.h"
#include "runtime/cpu/zero_runs.h"

namespace partita::cpu {
namespace {

// Smaller matrices stay in caches, and are multiplied whole.
constexpr int64_t kLeastBytes = 32 << 10;
constexpr int64_t kMostPrunedRows = 16;
// The largest share of runs of a sparse matrix. oneDNN, which multiplies many
// rows, makes better use of the processor.
constexpr double kMostRunsOfFewRows = 0.6, kMostRunsOfManyRows = 0.34;

// oneDNN computes these several times faster, which counts with many rows.
bool IsSlow(device::Activation activation) {
  return activation == device::Activation::kGeluErf ||
         activation == device::Activation::kTanh;
}

// `dims` of bytes differ from all layouts that oneDNN chooses.
absl::StatusOr<std::shared_ptr<PackedWeight>> Pack(
    DnnlContext& context, const device::GemmDesc& desc, const void* rhs,
    const std::vector<int64_t>& dims, const std::function<void(void*)>& fill) {
  PARTITA_ASSIGN_OR_RETURN(
      const dnnl_memory_desc_t source,
      MakeMemoryDesc(desc.dtype, {desc.k, desc.n},
                     {desc.rhs_strides[1], desc.rhs_strides[2]}));
  PARTITA_ASSIGN_OR_RETURN(const dnnl_memory_desc_t wanted,
                           MakeMemoryDesc(base::DType::kU8, dims));
  return PackConstant(context, rhs, source, wanted, [&](void* target) {
    fill(target);
    return absl::OkStatus();
  });
}

}  // namespace

absl::StatusOr<SparseWeight> PackSparse(DnnlContext& context,
                                        const device::GemmDesc& desc,
                                        const void* rhs) {
  SparseWeight weight;
  const int64_t rows = desc.batch * desc.m;
  if (rhs == nullptr || (rows > kMostRows && IsSlow(desc.activation)) ||
      desc.k * desc.n * static_cast<int64_t>(sizeof(float)) < kLeastBytes)
    return weight;
  const MatrixView matrix = {static_cast<const float*>(rhs), desc.k, desc.n,
                             desc.rhs_strides[1], desc.rhs_strides[2]};
  if (rows <= kMostPrunedRows && IsPrunedTwoOfFour(matrix)) {
    PARTITA_ASSIGN_OR_RETURN(
        weight.packed,
        Pack(context, desc, rhs, {PackedPrunedBytes(desc.k, desc.n)},
             [&](void* target) { PackPruned(matrix, target); }));
    weight.kernel = PrunedKernels().front();
    weight.description = "rows pruned 2:4";
    return weight;
  }
  const int64_t runs =
      CountRuns(matrix, rows <= kMostPrunedRows ? kMostRunsOfFewRows
                                                : kMostRunsOfManyRows);
  if (runs < 0) return weight;
  PARTITA_ASSIGN_OR_RETURN(
      weight.packed,
      Pack(context, desc, rhs, {1, PackedRunsBytes(desc.k, desc.n, runs)},
           [&](void* target) { PackRuns(matrix, target); }));
  weight.kernel = RunKernels().front();
  weight.description = "rows without zero blocks";
  return weight;
}

}  // namespace partita::cpu
