// What one device launches of a step under a mapping: the step is divided and
// lowered as compiling does it, up to kernels.
#ifndef PARTITA_COMPILER_DRIVER_PLANNING_LOWER_STEP_H_
#define PARTITA_COMPILER_DRIVER_PLANNING_LOWER_STEP_H_

#include <optional>
#include <string>
#include <vector>

#include "compiler/plan/plan.h"
#include "compiler/planner/step_graph.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace partita::driver {

// Gives each operation of each function a number, which its location keeps
// through all passes.
void numberOperations(mlir::ModuleOp module);
// -1: of no numbered operation.
int numberOf(mlir::Operation* op);

// `module` as prepareStep leaves it before a plan is applied, numbered.
// Launches are those of the functions of these names; nothing where the plan
// does not divide it. `gpu`: of programs for GPUs.
std::optional<planner::StepLaunches> lowerStep(
    mlir::ModuleOp module, const std::vector<std::string>& functions,
    const plan::Plan& plan, bool gpu);
// The same, as a step runs them: functions as often as they are called.
std::optional<std::vector<planner::StepLaunch>> lowerStep(
    mlir::ModuleOp module, const plan::Plan& plan, bool gpu);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_PLANNING_LOWER_STEP_H_
