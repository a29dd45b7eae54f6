// A training step before it is divided, and its shardings under each mapping.
#ifndef PARTITA_COMPILER_DRIVER_PLANNING_PREPARE_STEP_H_
#define PARTITA_COMPILER_DRIVER_PLANNING_PREPARE_STEP_H_

#include <vector>

#include "compiler/driver/run_phase.h"
#include "compiler/plan/plan.h"
#include "compiler/planner/layers/step_graph.h"
#include "compiler/sharding/problem.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::driver {

struct PreparedStep {
  sharding::Problem problem;  // of the module
  std::vector<planner::StepMapping> mappings;
};

// Runs the phases to kStep, with an optimizer without states, and applies one
// plan per mapping. The mappings divide the batch; the rows of images, or the
// sequence; hidden widths, heads and classes; nothing. Composites that any of
// them divides are decomposed. Fails after diagnostics.
mlir::FailureOr<PreparedStep> prepareStep(mlir::ModuleOp module,
                                          plan::Precision precision,
                                          Fault& fault);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_PLANNING_PREPARE_STEP_H_
