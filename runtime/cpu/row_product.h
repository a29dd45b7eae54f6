// Products of a few rows with a matrix, or of any number with a sparse matrix.
// They read the matrix once for each eight rows, at the speed of memory; oneDNN
// is several times slower at one row.
#ifndef PARTITA_RUNTIME_CPU_ROW_PRODUCT_H_
#define PARTITA_RUNTIME_CPU_ROW_PRODUCT_H_

#include <memory>

#include "absl/status/statusor.h"
#include "runtime/cpu/library_op.h"
#include "runtime/device/operations.h"

namespace partita::cpu {

// True for f32 products with one matrix whose rows or columns are contiguous.
bool IsRowProduct(const device::GemmDesc& desc);

// The most rows of a product with a whole matrix.
inline constexpr int kMostRows = 8;

// Requires IsRowProduct. `rhs` is the matrix if it is constant, else null. A
// large constant matrix is copied into panels, which are read from one end to
// the other, if it is sparse (sparse_weight.h) or its rows are contiguous. Null
// if there are more than kMostRows rows and the matrix is not sparse.
// ResourceExhausted if memory ran out.
absl::StatusOr<std::unique_ptr<CpuOp>> MakeRowProduct(
    DnnlContext& context, const device::GemmDesc& desc, const void* rhs,
    int threads);

}  // namespace partita::cpu

#endif  // PARTITA_RUNTIME_CPU_ROW_PRODUCT_H_
