// A model as unlike layers that the planner can divide each in its own way.
#ifndef PARTITA_COMPILER_DRIVER_PLANNING_FIND_LAYERS_H_
#define PARTITA_COMPILER_DRIVER_PLANNING_FIND_LAYERS_H_

#include "compiler/driver/run_phase.h"
#include "compiler/plan/plan.h"
#include "compiler/planner/layers/step_graph.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::driver {

// A step of training (AdamW, cross-entropy) of an imported model, as compiling
// makes it, with its operations grouped to kernels. Layers are the parts that
// parameters' names tell apart and that hold no list of parts:
// "stages.0.blocks.1". Mappings are those that the names of the model's
// dimensions offer. Fails after diagnostics, `fault` says whose fault it is.
mlir::FailureOr<planner::StepGraph> findLayers(mlir::ModuleOp module,
                                               plan::Precision precision,
                                               Fault& fault);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_PLANNING_FIND_LAYERS_H_
