// Kernels that are one nn.scatter.
#ifndef PARTITA_COMPILER_KERNELS_EMIT_SCATTER_H_
#define PARTITA_COMPILER_KERNELS_EMIT_SCATTER_H_

#include "compiler/kernels/emit_nest.h"
#include "dialects/nn/dialect.h"

namespace partita::kernels {

// The scatter that is the only result of `kernel`; null if there is none.
nn::ScatterOp findScatter(mlir::func::FuncOp kernel);

// Of a kernel that findScatter likes; its range is 1, because updates may meet.
mlir::LogicalResult emitScatter(Emitter& emitter, nn::ScatterOp op,
                                const Output& output, mlir::Value begin,
                                mlir::Value end);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_EMIT_SCATTER_H_
