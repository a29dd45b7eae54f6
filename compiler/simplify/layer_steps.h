// @main as a straight line of steps, in an order in which layers that do the
// same look the same.
#ifndef PARTITA_COMPILER_SIMPLIFY_LAYER_STEPS_H_
#define PARTITA_COMPILER_SIMPLIFY_LAYER_STEPS_H_

#include <vector>

#include "compiler/simplify/repeats.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::simplify {

// Steps of a program and the operations they stand for.
struct LayerSteps {
  std::vector<Step> steps;
  std::vector<mlir::Operation*> operations;
};

// Brings the operations of a function into this order, and returns the steps:
// - What costs nothing (small constants, broadcasts, reshapes, counts) stands,
// as its own copy, directly before the
//   operation that reads it. Everything else but large constants is a step.
// - What several layers share, masks and position biases, comes first.
// - What else does not depend on a matrix product, or depends on parameters
// alone, comes directly before its reader.
// - All else keeps its order.
LayerSteps orderSteps(mlir::func::FuncOp function);

// Whether an operation is one that costs nothing.
bool isFree(mlir::Operation* op);
// The values that a step reads, seen through what costs nothing, in the order
// of Step::operands.
mlir::SmallVector<mlir::Value> sourcesOf(mlir::Operation* op);
// What costs nothing and belongs to the step alone, in program order.
mlir::SmallVector<mlir::Operation*> freeOperationsOf(mlir::Operation* op);

}  // namespace partita::simplify

#endif  // PARTITA_COMPILER_SIMPLIFY_LAYER_STEPS_H_
