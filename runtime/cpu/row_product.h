// Products of a few rows with a matrix. They read the matrix once, at the speed
// of memory; oneDNN is several times slower at one row.
#ifndef PARTITA_RUNTIME_CPU_ROW_PRODUCT_H_
#define PARTITA_RUNTIME_CPU_ROW_PRODUCT_H_

#include <memory>

#include "absl/status/statusor.h"
#include "runtime/cpu/library_op.h"
#include "runtime/device/operations.h"

namespace partita::cpu {

// True for f32 products of at most kMostRows rows with one matrix whose rows or
// columns are contiguous; at most kMostPrunedRows if the matrix is large,
// constant and pruned 2:4, and the activation is not slow. `rhs` is the matrix
// if it is constant, else null.
inline constexpr int kMostRows = 8, kMostPrunedRows = 16;
bool IsRowProduct(const device::GemmDesc& desc, const void* rhs);

// Requires IsRowProduct. A large constant matrix is copied into panels, which
// are read from one end to the other, if it is pruned 2:4 or its rows are
// contiguous. ResourceExhausted if memory ran out.
absl::StatusOr<std::unique_ptr<CpuOp>> MakeRowProduct(
    DnnlContext& context, const device::GemmDesc& desc, const void* rhs,
    int threads);

}  // namespace partita::cpu

#endif  // PARTITA_RUNTIME_CPU_ROW_PRODUCT_H_
