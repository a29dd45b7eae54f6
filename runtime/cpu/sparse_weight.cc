// Tries the forms of sparse weights.
#include "runtime/cpu/sparse_weight.h"

#include <functional>
#include <vector>

#include "runtime/base/status_macros.h"
#include "runtime/cpu/pruned_rows.h"
#include "runtime/cpu/row_product.h"
#include "runtime/cpu/vector_activations.h"
#include "runtime/cpu/zero_runs.h"

namespace partita::cpu {
namespace {

// Smaller matrices stay in caches, and are multiplied whole.
constexpr int64_t kLeastBytes = 32 << 10;
constexpr int64_t kFewRows = 16;
// The largest share of runs of a sparse matrix, and of one that runs describe
// better than the pattern 2:4. oneDNN, which multiplies many rows, makes better
// use of the processor.
constexpr double kMostRunsOfFewRows = 0.6, kMostRunsBefore2Of4 = 0.45,
                 kMostRunsOfManyRows = 0.34;

// Without vectors of activations, oneDNN computes these several times faster.
// With many rows that costs more than zeros save: for any depth or for sums of
// few terms.
bool IsSlow(device::Activation activation, int64_t depth) {
  if (HasVectorActivations()) return false;
  switch (activation) {
    case device::Activation::kGeluErf:
    case device::Activation::kTanh:
      return true;
    case device::Activation::kGeluTanh:
    case device::Activation::kSilu:
    case device::Activation::kSigmoid:
      return depth < 1024;
    default:
      return false;
  }
}

// The shape `dims` of the packed bytes is one that oneDNN never chooses, so
// that copies for oneDNN are not taken for this one.
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

// The number of runs to keep of a matrix whose share of runs is at most `most`,
// and which is smaller packed; else -1.
int64_t RunsToKeep(const MatrixView& matrix, double most, int64_t most_bytes) {
  const int64_t runs = CountRuns(matrix, most);
  return runs >= 0 && PackedRunsBytes(matrix.depth, matrix.columns, runs) <=
                          most_bytes
             ? runs
             : -1;
}

bool KeepsPattern(const MatrixView& matrix, int64_t most_bytes) {
  // The kernel without vectors is slower than the product of whole matrices.
  return PrunedKernels().size() > 1 &&
         PackedPrunedBytes(matrix.depth, matrix.columns) <= most_bytes &&
         IsPrunedTwoOfFour(matrix);
}

}  // namespace

absl::StatusOr<SparseWeight> PackSparse(DnnlContext& context,
                                        const device::GemmDesc& desc,
                                        const void* rhs) {
  SparseWeight weight;
  const int64_t rows = desc.batch * desc.m;
  const int64_t bytes = desc.k * desc.n * static_cast<int64_t>(sizeof(float));
  if (rhs == nullptr || bytes < kLeastBytes ||
      (rows > kMostRows && IsSlow(desc.activation, desc.k)))
    return weight;
  const MatrixView matrix = {static_cast<const float*>(rhs), desc.k, desc.n,
                             desc.rhs_strides[1], desc.rhs_strides[2]};
  const int64_t most_bytes = bytes / 4 * 3;
  const bool few = rows <= kFewRows;
  int64_t runs = RunsToKeep(
      matrix, few ? kMostRunsBefore2Of4 : kMostRunsOfManyRows, most_bytes);
  if (runs < 0 && few && KeepsPattern(matrix, most_bytes)) {
    PARTITA_ASSIGN_OR_RETURN(
        weight.packed,
        Pack(context, desc, rhs, {PackedPrunedBytes(desc.k, desc.n)},
             [&](void* target) { PackPruned(matrix, target); }));
    weight.kernel = PrunedKernels().front();
    weight.description = "rows pruned 2:4";
    return weight;
  }
  if (runs < 0 && few)
    runs = RunsToKeep(matrix, kMostRunsOfFewRows, most_bytes);
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
