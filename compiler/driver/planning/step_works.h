// What the operations of a function are to a clock.
#ifndef PARTITA_COMPILER_DRIVER_PLANNING_STEP_WORKS_H_
#define PARTITA_COMPILER_DRIVER_PLANNING_STEP_WORKS_H_

#include <vector>

#include "compiler/planner/layers/step_graph.h"
#include "compiler/sharding/problem.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::driver {

planner::WorkKind kindOf(mlir::Operation* op);

struct FunctionWorks {
  std::vector<planner::StepWork> works;
  std::vector<mlir::Operation*> heads;  // the last operation of each
};

// Products, convolutions and attentions; what stands between them as fusion
// makes kernels of it, with what these read and write in memory.
FunctionWorks worksOf(mlir::func::FuncOp function,
                      const sharding::Problem& problem);

// Of convolutions, their gradients and pooling, by operation.
std::vector<planner::StepHalo> halosOf(mlir::func::FuncOp function,
                                       const sharding::Problem& problem);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_PLANNING_STEP_WORKS_H_
