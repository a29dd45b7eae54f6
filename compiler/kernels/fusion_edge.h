// How kernels read each other's values.
#ifndef PARTITA_COMPILER_KERNELS_FUSION_EDGE_H_
#define PARTITA_COMPILER_KERNELS_FUSION_EDGE_H_

#include "mlir/IR/Operation.h"

namespace partita::kernels {

// How a consumer reads a producer: directly, or through movement that may
// repeat or reorder elements.
struct Edge {
  mlir::Operation* consumer;
  mlir::Value operand;  // the consumer's operand at the end of the path
  bool moved = false;   // the path has movement other than reshape
  bool reshaped = false;
  bool repeats = false;  // the path has a broadcast
  // Every broadcast on the path only adds trailing dimensions.
  bool repeats_rows = true;

  // Adds an operation (FusionRole::movement) to the end of the path.
  void pass(mlir::Operation* movement);
};

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_FUSION_EDGE_H_
