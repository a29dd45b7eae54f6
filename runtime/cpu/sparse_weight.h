// Constant weights of products whose zeros need no multiplication, found by
// their content.
#ifndef PARTITA_RUNTIME_CPU_SPARSE_WEIGHT_H_
#define PARTITA_RUNTIME_CPU_SPARSE_WEIGHT_H_

#include <memory>

#include "absl/status/statusor.h"
#include "runtime/cpu/library_op.h"
#include "runtime/cpu/sparse_part.h"
#include "runtime/device/operations.h"

namespace partita::cpu {

struct SparseWeight {
  SparseKernel kernel = nullptr;  // null: the weight is multiplied whole
  std::shared_ptr<PackedWeight> packed;
  const char* description = "";
};

// Packs the matrix `rhs` [k, n] of f32 if a product of this size is faster
// without its zeros: at most 16 rows if the matrix is pruned 2:4, or if 40 % of
// its runs of 16 columns are zero; more rows if 66 % are. A matrix of less than
// 32 KB is multiplied whole, and so is one whose packed copy would have more
// than three fourths of its bytes. More than eight rows also use the whole
// matrix if an activation follows that oneDNN computes faster. A null `rhs` is
// not constant.
// ResourceExhausted if memory ran out.
absl::StatusOr<SparseWeight> PackSparse(DnnlContext& context,
                                        const device::GemmDesc& desc,
                                        const void* rhs);

}  // namespace partita::cpu

#endif  // PARTITA_RUNTIME_CPU_SPARSE_WEIGHT_H_
