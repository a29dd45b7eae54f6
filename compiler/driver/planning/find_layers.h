// A model as unlike layers that the planner can divide each in its own way.
#ifndef PARTITA_COMPILER_DRIVER_PLANNING_FIND_LAYERS_H_
#define PARTITA_COMPILER_DRIVER_PLANNING_FIND_LAYERS_H_

#include <optional>
#include <vector>

#include "compiler/driver/run_phase.h"
#include "compiler/plan/plan.h"
#include "compiler/planner/step_graph.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace partita::driver {

// A step, and the module that it is of, by which to compile it.
struct FoundLayers {
  planner::StepGraph step;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

// A step of training (AdamW, cross-entropy) of an imported model, as compiling
// makes it, with its operations grouped to kernels. Layers are the parts that
// parameters' names tell apart and that hold no list of parts:
// "stages.0.blocks.1". Mappings are those that the names of the model's
// dimensions offer. Fails after diagnostics, `fault` says whose fault it is.
mlir::FailureOr<FoundLayers> findLayers(mlir::ModuleOp module,
                                        plan::Precision precision,
                                        Fault& fault);
// What each device launches of it, on a GPU or a CPU (lower_step.h).
std::optional<planner::StepLaunches> launchesOf(
    const FoundLayers& found, const planner::StepMapping& mapping, int data,
    int inner, bool gpu);
std::optional<std::vector<planner::StepLaunch>> launchesOf(
    const FoundLayers& found, const plan::Plan& plan, bool gpu);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_PLANNING_FIND_LAYERS_H_
