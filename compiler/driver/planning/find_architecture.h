// Reduces a model to the few numbers that the planner takes.
#ifndef PARTITA_COMPILER_DRIVER_PLANNING_FIND_ARCHITECTURE_H_
#define PARTITA_COMPILER_DRIVER_PLANNING_FIND_ARCHITECTURE_H_

#include "compiler/planner/search/write_plan.h"
#include "compiler/planner/transformer/architecture.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::driver {

struct FoundModel {
  planner::Architecture architecture;
  int64_t batch = 1;  // sequences
  // Layers that are alike, one after the other. The others differ in their MLP
  // only, as the first layers of DeepSeek-V3, which have no experts. 0: layers
  // of different kinds take turns, or it is a T5.
  int64_t repeated = 0;
  planner::PlanNames names;  // `layer` is empty where layers have no numbers
};

// Finds the sizes of a transformer with identical layers by the meanings of its
// dimensions. Layers may have experts; if some have none, the sizes are the
// average. Refuses other models with a diagnostic, e.g. a CoAtNet, whose stages
// have different widths.
mlir::FailureOr<FoundModel> findArchitecture(mlir::ModuleOp module);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_PLANNING_FIND_ARCHITECTURE_H_
