// Gives every value of a model the sharding that a plan implies.
#ifndef PARTITA_COMPILER_SHARDING_APPLY_PLAN_H_
#define PARTITA_COMPILER_SHARDING_APPLY_PLAN_H_

#include <memory>

#include "compiler/plan/plan.h"
#include "compiler/sharding/problem.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace partita::sharding {

// Requires dimension names (`nn.dims`). Copies functions whose calls are in the
// scope of different entries. Applies overrides first, then the plan's entries,
// each as one priority of propagation. If the normalised dimension of a
// composite is divided, decomposes the composite and applies the plan again.
// Afterwards the module has `dist.mesh @mesh` and a sharding on every argument
// and operation. Fails with a diagnostic if an override names no tensor, a
// scope matches nothing, or an annotation of the model contradicts the plan or
// is for another mesh.
mlir::LogicalResult applyPlan(mlir::ModuleOp module, const plan::Plan& plan);

// Like `applyPlan`, but writes no shardings on the module, only the mesh. The
// result describes the module as this function leaves it. `before` is a problem
// of the current module, which saves time, or empty.
mlir::FailureOr<Decided> decideShardings(mlir::ModuleOp module,
                                         const plan::Plan& plan,
                                         Problem before = Problem());

// Runs `applyPlan` as a pass. If `decided` is given, runs `decideShardings` and
// stores the result there.
std::unique_ptr<mlir::Pass> createApplyPlanPass(
    plan::Plan plan, std::shared_ptr<Decided> decided = nullptr);

}  // namespace partita::sharding

#endif  // PARTITA_COMPILER_SHARDING_APPLY_PLAN_H_
