// Gives every value of a model its sharding, as a plan says.
#ifndef PARTITA_COMPILER_SHARDING_APPLY_PLAN_H_
#define PARTITA_COMPILER_SHARDING_APPLY_PLAN_H_

#include "compiler/plan/plan.h"
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

// The same as a pass.
std::unique_ptr<mlir::Pass> createApplyPlanPass(plan::Plan plan);

}  // namespace partita::sharding

#endif  // PARTITA_COMPILER_SHARDING_APPLY_PLAN_H_
