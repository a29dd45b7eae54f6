// Kernels that are one nn.scatter.
//
// The result is seen as rows, of which each index vector names one, with
// columns: the window that it updates. An item of the range is for one thread a
// batch, for a team a block of consecutive rows of one batch and a chunk of
// their columns. It stores what the input has there, then looks through all
// index vectors of its batch and combines the updates of those that name one of
// its rows, in their order. So no two items write the same element, and sums
// are those of the interpreter, bit for bit, however many threads there are.
#ifndef PARTITA_COMPILER_KERNELS_EMIT_SCATTER_H_
#define PARTITA_COMPILER_KERNELS_EMIT_SCATTER_H_

#include "compiler/kernels/emit_nest.h"
#include "dialects/nn/dialect.h"

namespace partita::kernels {

// The scatter that is the only result of `kernel`; null if there is none.
nn::ScatterOp findScatter(mlir::func::FuncOp kernel);

// Of a kernel that findScatter likes; for one thread, or for a team of kWarp.
// Returns the range.
mlir::FailureOr<int64_t> emitScatter(Emitter& emitter, nn::ScatterOp op,
                                     const Output& output, mlir::Value begin,
                                     mlir::Value end);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_EMIT_SCATTER_H_
