// Finds the different layers of a model, each of which the planner can divide
// in its own way.
#ifndef PARTITA_COMPILER_DRIVER_PLANNING_FIND_LAYERS_H_
#define PARTITA_COMPILER_DRIVER_PLANNING_FIND_LAYERS_H_

#include "compiler/driver/run_phase.h"
#include "compiler/plan/plan.h"
#include "compiler/planner/layers/step_graph.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::driver {

// Makes a training step (AdamW, cross-entropy) of an imported model, as
// compiling makes it, with operations grouped into kernels. Layers are the
// parts that the names of parameters tell apart and that contain no list of
// parts: "stages.0.blocks.1". Mappings follow from the names of the model's
// dimensions. Fails after diagnostics; `fault` says whose fault it is.
mlir::FailureOr<planner::StepGraph> findLayers(mlir::ModuleOp module,
                                               plan::Precision precision,
                                               Fault& fault);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_PLANNING_FIND_LAYERS_H_
