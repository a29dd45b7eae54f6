// Kernels of rows in order of their matrices, on tensor cores: nn.order_rows,
// nn.ordered_dot and its weight gradient.
//
// Products multiply tiles. A tile of rows belongs to one group, so each row is
// multiplied by one matrix only. The number of tiles is static. With tiles of T
// rows, group i, from position p to position q, has the tiles p / T + i ...
// q / T + i, rounded down. Some of them may be empty; no two groups have the
// same. So there are R / T + groups tiles, and a block finds its group by
// bisection. Sums do not depend on the order in which blocks run.
#ifndef PARTITA_COMPILER_KERNELS_EMIT_ORDERED_H_
#define PARTITA_COMPILER_KERNELS_EMIT_ORDERED_H_

#include "compiler/kernels/emit_nest.h"

namespace partita::kernels {

// Returns the operations of the above in `kernel`: none, one, or two products
// of the same rows. Elementwise operations on their results may follow.
llvm::SmallVector<mlir::Operation*> findOrdered(mlir::func::FuncOp kernel);

// Emits them for teams of kBlock. `ops` come from findOrdered; elements are
// bf16, f16 or f32. `warpgroups`: warpgroups multiply 16-bit elements. Returns
// the range.
mlir::FailureOr<int64_t> emitOrdered(Emitter& emitter,
                                     llvm::ArrayRef<mlir::Operation*> ops,
                                     llvm::ArrayRef<Output> outputs,
                                     mlir::Value begin, mlir::Value end,
                                     bool warpgroups);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_EMIT_ORDERED_H_
