// Finds the kernels of a function, for estimates of their time.
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

// Products, convolutions and attentions, and the fused kernels between them,
// each with the values that it reads and writes in memory.
FunctionWorks worksOf(mlir::func::FuncOp function,
                      const sharding::Problem& problem);

// Halos of convolutions, their gradients and pooling, by operation.
std::vector<planner::StepHalo> halosOf(mlir::func::FuncOp function,
                                       const sharding::Problem& problem);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_PLANNING_STEP_WORKS_H_
