// Kernels whose results are elements of rows and sums of rows over blocks of
// rows, as in the backward pass of a norm or of an activation with a bias. One
// pass over the rows computes both.
#ifndef PARTITA_COMPILER_KERNELS_EMIT_ROW_SUMS_H_
#define PARTITA_COMPILER_KERNELS_EMIT_ROW_SUMS_H_

#include <optional>

#include "compiler/kernels/emit_nest.h"

namespace partita::kernels {

struct RowSums {
  // Blocks of `rows` rows of `width` elements. An item of the range is a block,
  // or, if rows are not reduced, a part of its columns.
  int64_t blocks = 0, rows = 0, width = 0;
  // Their elements are those of all rows, one after the other.
  llvm::SmallVector<Output> elements;
  // The value is the input of the sum, shaped like `elements`. The buffer gets
  // a row of sums per block.
  llvm::SmallVector<Output> sums;
};

// Absent if the results are not of this kind.
std::optional<RowSums> findRowSums(llvm::ArrayRef<Output> outputs);

// Emits the items begin .. end-1. Returns the range.
mlir::FailureOr<int64_t> emitRowSums(Emitter& emitter, const RowSums& kernel,
                                     mlir::Value begin, mlir::Value end);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_EMIT_ROW_SUMS_H_
