// Caches copies by the text of the plan's fields read so far.
#include "compiler/driver/planning/step_cache.h"

#include "compiler/driver/choose_recomputation.h"
#include "compiler/driver/compilation.h"
#include "compiler/plan/plan_schedule.h"

namespace partita::driver {

using Module = mlir::OwningOpRef<mlir::ModuleOp>;

namespace {

// The fields of a plan that simplifying reads.
plan::Plan simplifiedPart(const CompileOptions& options) {
  plan::Plan part;
  part.microbatches = options.plan->microbatches;
  part.precision = options.plan->precision.value_or(options.precision);
  return part;
}

// The fields of a plan that naming a step's dimensions reads.
plan::Plan namedPart(const CompileOptions& options) {
  plan::Plan part = simplifiedPart(options);
  part.recompute = options.plan->recompute;
  part.names = options.plan->names;
  return part;
}

}  // namespace

bool StepCache::dependsOnPlan(const CompileOptions& options) {
  const plan::Plan& plan = *options.plan;
  return !plan::DepthAxes(plan).empty() || !plan.budgets.empty() ||
         hasBudget(recomputeRules(&plan, options.train));
}

Module StepCache::simplified(const CompileOptions& options) {
  Module& known = simplified_[plan::WritePlan(simplifiedPart(options))];
  if (!known) {
    Module module = import_();
    if (!module) return nullptr;
    Compilation model(*module, options, Milestone::kImported,
                      /*machine_code=*/false);
    if (mlir::failed(model.runTo(Milestone::kSimplified))) return nullptr;
    known = std::move(module);
  }
  return known->clone();
}

Module StepCache::named(const CompileOptions& options) {
  Module& known = named_[plan::WritePlan(namedPart(options))];
  if (!known) {
    Module module = simplified(options);
    if (!module) return nullptr;
    Compilation model(*module, options, Milestone::kSimplified,
                      /*machine_code=*/false);
    if (mlir::failed(model.runTo(Milestone::kStep))) return nullptr;
    known = std::move(module);
  }
  return known->clone();
}

}  // namespace partita::driver
