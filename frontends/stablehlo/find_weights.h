// Finds the inputs of a program that are weights: its arguments do not say.
#ifndef PARTITA_FRONTENDS_STABLEHLO_FIND_WEIGHTS_H_
#define PARTITA_FRONTENDS_STABLEHLO_FIND_WEIGHTS_H_

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::stablehlo {

// Marks the inputs of @main that hold weights with nn.weight. The tensors of a
// pytree are weights if all are floats, and
// - their first dimensions differ, where a batch has one for all, or
// - one of them is a convolution's kernel, or a product sums over its first
//   dimension and another than the first of the other operand, as products of
//   weights do; over a batch, products sum in the first dimensions of both.
void markWeights(mlir::func::FuncOp main);

}  // namespace partita::stablehlo

#endif  // PARTITA_FRONTENDS_STABLEHLO_FIND_WEIGHTS_H_
