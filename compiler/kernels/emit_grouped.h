// Products of rows with the matrices of their indices (nn.grouped_dot and its
// weight gradient), on tensor cores.
//
// Two functions run one after the other. The first puts the rows in order of
// their matrices: group i holds the rows with index i, in the order of rows;
// the last group holds the rows whose index is of no matrix. The second
// multiplies tiles. A tile of rows belongs to one group, so each row is
// multiplied by one matrix only. Sums do not depend on the order in which
// blocks run.
//
// The memory between them holds 32-bit numbers: the position at which each
// group begins, the number of rows, and then the rows in order.
//
// The number of tiles is static. With tiles of T rows, group i, from position p
// to position q, has the tiles p / T + i ... q / T + i, rounded down. Some of
// them may be empty; no two groups have the same. So there are R / T + groups
// tiles, and a block finds its group by bisection.
#ifndef PARTITA_COMPILER_KERNELS_EMIT_GROUPED_H_
#define PARTITA_COMPILER_KERNELS_EMIT_GROUPED_H_

#include "compiler/kernels/emit_nest.h"

namespace partita::kernels {

// Returns the grouped product that is the only result of `kernel`; null if
// there is none or tensor cores cannot compute it. They multiply bf16, f16 and
// f32; the kernel may only move and scale elements besides.
mlir::Operation* findGroupedProduct(mlir::func::FuncOp kernel);

// The rows' indices, an operand of the operation, and the number of matrices.
mlir::Value indicesOf(mlir::Operation* op);
int64_t matricesOf(mlir::Operation* op);

// 32-bit numbers of memory between the two functions.
int64_t wordsOfRowOrder(mlir::Operation* op);

// Emit the two functions, for teams of kBlock. `op` comes from
// findGroupedProduct; `memory` has wordsOfRowOrder(op) floats. Return the
// range.
mlir::FailureOr<int64_t> emitRowOrder(Emitter& emitter, mlir::Operation* op,
                                      mlir::Value memory, mlir::Value begin,
                                      mlir::Value end);
mlir::FailureOr<int64_t> emitGroupedProduct(Emitter& emitter,
                                            mlir::Operation* op,
                                            const Buffer& result,
                                            mlir::Value memory,
                                            mlir::Value begin, mlir::Value end);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_EMIT_GROUPED_H_
