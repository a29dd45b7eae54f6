// Represents @main as a sequence of steps, ordered so that equal layers look
// equal.
#ifndef PARTITA_COMPILER_SIMPLIFY_LAYER_STEPS_H_
#define PARTITA_COMPILER_SIMPLIFY_LAYER_STEPS_H_

#include <vector>

#include "compiler/simplify/repeats.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::simplify {

// The steps of a program and their operations.
struct LayerSteps {
  std::vector<Step> steps;
  std::vector<mlir::Operation*> operations;
};

// Reorders the operations of a function and returns its steps:
// - Free operations (small constants, broadcasts, reshapes, iotas) are copied
//   directly before each reader. All other operations except large constants
//   are steps.
// - Operations that several layers share, such as masks and position biases,
//   come first.
// - Other operations that depend on no matrix product, or on parameters alone,
//   come directly before their reader.
// - The rest keeps its order.
LayerSteps orderSteps(mlir::func::FuncOp function);

// True for operations that cost nothing.
bool isFree(mlir::Operation* op);
// Returns the values that a step reads, looking through free operations, in the
// order of Step::operands.
mlir::SmallVector<mlir::Value> sourcesOf(mlir::Operation* op);
// Returns the free operations that belong to this step, in program order.
mlir::SmallVector<mlir::Operation*> freeOperationsOf(mlir::Operation* op);

}  // namespace partita::simplify

#endif  // PARTITA_COMPILER_SIMPLIFY_LAYER_STEPS_H_
