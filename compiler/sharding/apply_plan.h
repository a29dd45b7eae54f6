// Gives every value of a model its sharding, as a plan says.
#ifndef PARTITA_COMPILER_SHARDING_APPLY_PLAN_H_
#define PARTITA_COMPILER_SHARDING_APPLY_PLAN_H_

#include <memory>

#include "compiler/plan/plan.h"
#include "compiler/sharding/problem.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace partita::sharding {

// The module's dimensions have names (`nn.dims`). Functions in which different
// scoped entries act, by their calls, are copied. Overrides first, then the
// entries of the plan, each a priority of propagation; composites whose
// normalised dimension comes out divided are decomposed, and the plan is
// applied anew. Afterwards the module has `dist.mesh @mesh` and a sharding on
// every argument and operation. Fails, with a diagnostic, where an override
// names no tensor, a scope holds nothing, or a model's own annotation
// contradicts the plan or is for another mesh.
mlir::LogicalResult applyPlan(mlir::ModuleOp module, const plan::Plan& plan);

// The same, but that no sharding is written on the module, which has the mesh.
// The problem is of the module as it is left. `before` is one of the module as
// it stands, or empty: it saves time.
mlir::FailureOr<Decided> decideShardings(mlir::ModuleOp module,
                                         const plan::Plan& plan,
                                         Problem before = Problem());

// As a pass: of applyPlan, or of decideShardings where `decided` is given,
// which it fills in.
std::unique_ptr<mlir::Pass> createApplyPlanPass(
    plan::Plan plan, std::shared_ptr<Decided> decided = nullptr);

}  // namespace partita::sharding

#endif  // PARTITA_COMPILER_SHARDING_APPLY_PLAN_H_
