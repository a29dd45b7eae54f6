// Reduces a model to the few numbers that the planner takes.
#ifndef PARTITA_COMPILER_DRIVER_PLANNING_FIND_ARCHITECTURE_H_
#define PARTITA_COMPILER_DRIVER_PLANNING_FIND_ARCHITECTURE_H_

#include "compiler/planner/search/write_plan.h"
#include "compiler/planner/transformer/architecture.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::driver {

struct FoundModel {
  planner::Architecture architecture;
  int64_t batch = 1;         // sequences
  planner::PlanNames names;  // `layer` is empty where layers have no numbers
};

// Finds the sizes of a transformer with identical layers by the meanings of its
// dimensions. Refuses other models with a diagnostic, e.g. a CoAtNet, whose
// stages have different widths.
mlir::FailureOr<FoundModel> findArchitecture(mlir::ModuleOp module);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_PLANNING_FIND_ARCHITECTURE_H_
