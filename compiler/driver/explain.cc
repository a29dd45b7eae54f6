// Tables of collectives; trials of plans with one entry less.
#include "compiler/driver/explain.h"

#include <set>

#include "compiler/driver/model_phases.h"
#include "compiler/driver/session.h"
#include "compiler/partition/collective_report.h"
#include "llvm/Support/FormatVariadic.h"
#include "mlir/IR/OwningOpRef.h"
#include "runtime/base/quantity.h"

namespace partita::driver {
namespace {

using mlir::failure;
using mlir::FailureOr;
using mlir::LogicalResult;
using mlir::success;
using partition::CollectiveUse;

LogicalResult runPhases(mlir::ModuleOp module,
                        const std::vector<Phase>& phases) {
  for (const Phase& phase : phases) {
    mlir::PassManager manager(module.getContext());
    phase.build(manager);
    if (mlir::failed(manager.run(module))) return failure();
  }
  return success();
}

// The collectives of a simplified module under a plan.
FailureOr<std::vector<CollectiveUse>> collectivesUnder(mlir::ModuleOp module,
                                                       const plan::Plan& plan) {
  mlir::OwningOpRef<mlir::ModuleOp> copy(module.clone());
  if (mlir::failed(runPhases(*copy, divideModel(plan)))) return failure();
  return partition::listCollectives(*copy);
}

std::string keyOf(const CollectiveUse& use) {
  return use.kind + "|" + use.axes + "|" + describe(use.loc);
}

// The plan's divisions, each with the collectives that are gone without it.
class Trials {
 public:
  static FailureOr<Trials> run(mlir::ModuleOp module, const plan::Plan& plan) {
    Trials trials;
    for (size_t entry = 0; entry < plan.shard.size(); ++entry)
      for (size_t i = 0; i < plan.shard[entry].divisions.size(); ++i) {
        plan::Plan less = plan;
        auto& divisions = less.shard[entry].divisions;
        const plan::Division left_out = divisions[i];
        divisions.erase(divisions.begin() + i);
        auto uses = collectivesUnder(module, less);
        if (mlir::failed(uses)) return failure();
        Trial trial;
        trial.name = left_out.dimension + ": " +
                     core::ToString(plan.mesh, left_out.axes) + " (" +
                     plan::Where(plan, left_out.where) + ")";
        for (const CollectiveUse& use : *uses) trial.left.insert(keyOf(use));
        trials.trials_.push_back(std::move(trial));
      }
    return trials;
  }

  // The last division without which the collective is not there; empty: none
  // alone.
  std::string removing(const CollectiveUse& use) const {
    for (size_t i = trials_.size(); i-- > 0;)
      if (trials_[i].left.count(keyOf(use)) == 0) return trials_[i].name;
    return "";
  }

 private:
  struct Trial {
    std::string name;
    std::set<std::string> left;
  };
  std::vector<Trial> trials_;
};

}  // namespace

FailureOr<llvm::json::Value> explainPlan(mlir::ModuleOp module,
                                         const plan::Plan& plan) {
  mlir::OwningOpRef<mlir::ModuleOp> simplified(module.clone());
  if (mlir::failed(runPhases(*simplified, simplifyModel()))) return failure();
  auto uses = collectivesUnder(*simplified, plan);
  if (mlir::failed(uses)) return failure();
  auto trials = Trials::run(*simplified, plan);
  if (mlir::failed(trials)) return failure();
  llvm::json::Array rows;
  int64_t total = 0;
  for (const CollectiveUse& use : *uses) {
    total += use.bytes * use.times;
    rows.push_back(llvm::json::Object{{"kind", use.kind},
                                      {"axes", use.axes},
                                      {"group", use.group},
                                      {"bytes", use.bytes},
                                      {"times", use.times},
                                      {"where", describe(use.loc)},
                                      {"why", use.why},
                                      {"without", trials->removing(use)}});
  }
  return llvm::json::Value(
      llvm::json::Object{{"mesh", plan::ToString(plan.mesh)},
                         {"devices", plan.mesh.Size()},
                         {"bytes", total},
                         {"collectives", std::move(rows)}});
}

void printExplanation(const llvm::json::Value& explanation,
                      llvm::raw_ostream& stream) {
  const llvm::json::Object& facts = *explanation.getAsObject();
  stream << llvm::formatv("mesh {0}: each of {1} devices sends {2} a step\n",
                          *facts.getString("mesh"),
                          *facts.getInteger("devices"),
                          base::FormatBytes(*facts.getInteger("bytes")));
  for (const llvm::json::Value& value : *facts.getArray("collectives")) {
    const llvm::json::Object& row = *value.getAsObject();
    stream << llvm::formatv(
        "\n{0} over {1} ({2} devices): {3} x {4}\n  at    {5}\n  why   {6}\n",
        *row.getString("kind"), *row.getString("axes"),
        *row.getInteger("group"), base::FormatBytes(*row.getInteger("bytes")),
        *row.getInteger("times"), *row.getString("where"),
        *row.getString("why"));
    if (auto without = row.getString("without"); !without->empty())
      stream << "  gone  without " << *without << "\n";
  }
}

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
