// Compares the budgets of a plan with the bytes that a divided model sends.
#include "compiler/driver/budgets.h"

#include "compiler/driver/plan_trials.h"
#include "runtime/base/quantity.h"

namespace partita::driver {
namespace {

using mlir::failure;
using mlir::LogicalResult;
using mlir::success;
using partition::CollectiveUse;

struct Overrun {
  const plan::Budget* budget;
  int64_t sent = 0;
  std::vector<const CollectiveUse*> uses;
};

std::vector<Overrun> findOverruns(const plan::Plan& plan,
                                  const std::vector<CollectiveUse>& uses) {
  std::vector<Overrun> overruns;
  for (const plan::Budget& budget : plan.budgets) {
    Overrun overrun{&budget, 0, {}};
    for (const CollectiveUse& use : uses) {
      if (budget.kind != "total" && budget.kind != use.kind) continue;
      overrun.sent += use.bytes * use.times;
      overrun.uses.push_back(&use);
    }
    if (overrun.sent > budget.bytes) overruns.push_back(std::move(overrun));
  }
  return overruns;
}

void report(const Overrun& overrun, const plan::Plan& plan,
            const PlanTrials& trials, mlir::Location loc) {
  auto error = mlir::emitError(loc)
               << plan::Where(plan, overrun.budget->where)
               << ": expected at most "
               << base::FormatBytes(overrun.budget->bytes) << " of "
               << overrun.budget->kind << " a step and device, found "
               << base::FormatBytes(overrun.sent)
               << "; raise the budget, or change what the notes name";
  for (const CollectiveUse* use : overrun.uses) {
    mlir::Diagnostic& note = error.attachNote(use->loc);
    note << use->kind << " over " << use->axes << ", "
         << base::FormatBytes(use->bytes * use->times) << ": " << use->why;
    if (const std::string part = trials.removing(*use); !part.empty())
      note << "; gone without " << part;
  }
}

}  // namespace

LogicalResult checkBudgets(llvm::ArrayRef<mlir::ModuleOp> programs,
                           mlir::ModuleOp simplified, const plan::Plan& plan,
                           const TrainOptions* train, Fault& fault) {
  for (mlir::ModuleOp program : programs) {
    auto uses = partition::listCollectives(program);
    if (mlir::failed(uses)) return failure();
    const std::vector<Overrun> overruns = findOverruns(plan, *uses);
    if (overruns.empty()) continue;
    auto trials = PlanTrials::run(simplified, plan, train, fault);
    if (mlir::failed(trials)) return failure();
    for (const Overrun& overrun : overruns)
      report(overrun, plan, *trials,
             mlir::UnknownLoc::get(program.getContext()));
    return failure();
  }
  return success();
}

}  // namespace partita::driver
