// Budgets of a plan against what a divided model sends.
#include "compiler/driver/budgets.h"

#include "compiler/partition/collective_report.h"
#include "runtime/base/quantity.h"

namespace partita::driver {

using mlir::failure;
using mlir::LogicalResult;
using mlir::success;
using partition::CollectiveUse;

LogicalResult checkBudgets(mlir::ModuleOp module, const plan::Plan& plan) {
  if (plan.budgets.empty()) return success();
  auto uses = partition::listCollectives(module);
  if (mlir::failed(uses)) return failure();
  for (const plan::Budget& budget : plan.budgets) {
    int64_t sent = 0;
    for (const CollectiveUse& use : *uses)
      if (budget.kind == "total" || budget.kind == use.kind)
        sent += use.bytes * use.times;
    if (sent <= budget.bytes) continue;
    auto error = mlir::emitError(mlir::UnknownLoc::get(module.getContext()))
                 << plan::Where(plan, budget.where) << ": expected at most "
                 << base::FormatBytes(budget.bytes) << " of " << budget.kind
                 << " a step and device, found " << base::FormatBytes(sent);
    for (const CollectiveUse& use : *uses)
      if (budget.kind == "total" || budget.kind == use.kind)
        error.attachNote(use.loc)
            << use.kind << " over " << use.axes << ", "
            << base::FormatBytes(use.bytes * use.times) << ": " << use.why;
    return error << "; raise the budget or see partita explain for what "
                    "removes them";
  }
  return success();
}

}  // namespace partita::driver
