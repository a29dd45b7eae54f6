// Writes the masks of attention that kernels on tensor cores lack as a bias.
#ifndef PARTITA_COMPILER_KERNELS_MASKS_AS_BIAS_H_
#define PARTITA_COMPILER_KERNELS_MASKS_AS_BIAS_H_

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Operation.h"

namespace partita::kernels {

// Replaces shift, segments, blocks and sinks with their window of each
// nn.attention and of its gradients in `kernel` by a bias of 0 and -inf that
// the kernel computes. A window without shift and sinks stays: the kernel skips
// the keys before it. Blocks without shift stay as well, because kernels skip
// tiles by them; they are not in the bias if they are multiples of all tiles.
// Leaves those alone whose bias needs a gradient of another shape.
void writeMasksAsBias(mlir::func::FuncOp kernel);

// True if kernels on tensor cores compute `op`, nn.attention or its gradient:
// it has no mask but causality, a window, and blocks that kernels skip tiles
// by. Requires writeMasksAsBias.
bool isPlainAttention(mlir::Operation* op);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_MASKS_AS_BIAS_H_
