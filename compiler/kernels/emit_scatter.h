// Emits kernels that are one nn.scatter.
//
// The result is seen as rows and columns. An index vector names a row; the
// columns are the window that it updates. An item of the range is one batch
// element for a single thread. For a team it is a block of consecutive rows of
// one batch element and a chunk of their columns.
//
// An item copies its part of the input. Then it goes through all index vectors
// of its batch element, and applies the updates of its own rows in their order.
// No two items write the same element, so sums equal the interpreter's bit for
// bit, for any number of threads.
#ifndef PARTITA_COMPILER_KERNELS_EMIT_SCATTER_H_
#define PARTITA_COMPILER_KERNELS_EMIT_SCATTER_H_

#include "compiler/kernels/emit_nest.h"
#include "dialects/nn/dialect.h"

namespace partita::kernels {

// The scatter that is the only result of `kernel`; null if there is none.
nn::ScatterOp findScatter(mlir::func::FuncOp kernel);

// Emits the scatter that findScatter returns, for one thread or for a team of
// kWarp. Returns the range.
mlir::FailureOr<int64_t> emitScatter(Emitter& emitter, nn::ScatterOp op,
                                     const Output& output, mlir::Value begin,
                                     mlir::Value end);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_EMIT_SCATTER_H_
