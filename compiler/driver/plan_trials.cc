// Divides copies of the model, by the plan and by plans that lack one part.
#include "compiler/driver/plan_trials.h"

#include "compiler/driver/compilation.h"
#include "compiler/driver/session.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "mlir/IR/OwningOpRef.h"

namespace partita::driver {
namespace {

using mlir::failure;
using mlir::FailureOr;
using mlir::LogicalResult;
using mlir::success;
using partition::CollectiveUse;
using partition::Padding;

std::string keyOf(const CollectiveUse& use) {
  return use.kind + "|" + use.axes + "|" + describe(use.loc);
}

std::string keyOf(const Padding& padding) {
  return llvm::formatv("{0}|{1}|{2}|{3}|{4}", padding.name, padding.size,
                       padding.block, padding.axes, padding.priority);
}

}  // namespace

FailureOr<PlanCosts> costsUnder(mlir::ModuleOp module, const plan::Plan& plan,
                                const TrainOptions* train, Fault& fault) {
  Compilation divided(mlir::OwningOpRef<mlir::ModuleOp>(module.clone()),
                      optionsToJudge(plan, train), Milestone::kSimplified,
                      /*machine_code=*/false);
  divided.listPaddings();
  if (mlir::failed(divided.runTo(Milestone::kPartitioned, fault)))
    return failure();
  PlanCosts costs;
  costs.paddings = divided.paddings();
  for (mlir::ModuleOp program : divided.programs()) {
    auto uses = partition::listCollectives(program);
    if (mlir::failed(uses)) return failure();
    int64_t sent = 0;
    for (const CollectiveUse& use : *uses) sent += use.bytes * use.times;
    costs.most_sent = std::max(costs.most_sent, sent);
    llvm::append_range(costs.collectives, *uses);
  }
  return costs;
}

std::string textOf(const plan::Plan& plan, const plan::Entry& entry,
                   const plan::ShardedDimension& division) {
  std::string scope =
      entry.at.empty() ? "" : " at " + llvm::join(entry.at, ", ");
  for (auto [i, stage] : llvm::enumerate(entry.stages))
    scope += (i == 0 ? " in stage " : ", ") + std::to_string(stage);
  return division.dimension + ": " + core::ToString(plan.mesh, division.axes) +
         scope + " (" + plan::Where(plan, division.where) + ")";
}

std::string textOf(const plan::Plan& plan, const plan::Override& override) {
  return "the override of '" + override.tensor + "' (" +
         plan::Where(plan, override.where) + ")";
}

FailureOr<PlanTrials> PlanTrials::run(mlir::ModuleOp module,
                                      const plan::Plan& plan,
                                      const TrainOptions* train, Fault& fault) {
  PlanTrials trials;
  for (auto [number, entry] : llvm::enumerate(plan.shard))
    for (auto [i, division] : llvm::enumerate(entry.dimensions)) {
      // Without D there is no pipeline, and nothing to compare.
      if (division.dimension == "D") continue;
      plan::Plan less = plan;
      auto& dimensions = less.shard[number].dimensions;
      dimensions.erase(dimensions.begin() + i);
      if (mlir::failed(trials.add(module, textOf(plan, entry, division), less,
                                  train, fault)))
        return failure();
    }
  for (size_t i = 0; i < plan.overrides.size(); ++i) {
    plan::Plan less = plan;
    less.overrides.erase(less.overrides.begin() + i);
    if (mlir::failed(trials.add(module, textOf(plan, plan.overrides[i]), less,
                                train, fault)))
      return failure();
  }
  return trials;
}

LogicalResult PlanTrials::add(mlir::ModuleOp module, std::string name,
                              const plan::Plan& less, const TrainOptions* train,
                              Fault& fault) {
  // Warnings are hidden, since nobody asked for this plan. If the plan is
  // invalid without the part, this is not the user's mistake: the part cannot
  // be left out.
  std::string errors;
  Fault trial_fault = Fault::kUser;
  FailureOr<PlanCosts> costs = failure();
  {
    mlir::ScopedDiagnosticHandler quiet(
        module.getContext(), [&](mlir::Diagnostic& diagnostic) {
          if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error)
            errors += (errors.empty() ? "" : "; ") + diagnostic.str();
          return success();
        });
    costs = costsUnder(module, less, train, trial_fault);
  }
  if (mlir::failed(costs) && trial_fault == Fault::kUser) return success();
  if (mlir::failed(costs)) {
    fault = trial_fault;
    return module.emitError("without ") << name << ": " << errors;
  }
  Trial trial{std::move(name), {}};
  for (const CollectiveUse& use : costs->collectives)
    trial.left.insert(keyOf(use));
  for (const Padding& padding : costs->paddings)
    trial.left.insert(keyOf(padding));
  trials_.push_back(std::move(trial));
  return success();
}

std::string PlanTrials::removing(const CollectiveUse& use) const {
  return removingKey(keyOf(use));
}

std::string PlanTrials::removing(const Padding& padding) const {
  return removingKey(keyOf(padding));
}

std::string PlanTrials::removingKey(const std::string& key) const {
  for (size_t i = trials_.size(); i-- > 0;)
    if (trials_[i].left.count(key) == 0) return trials_[i].name;
  return "";
}

}  // namespace partita::driver
