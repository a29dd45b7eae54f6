// The costs of a plan for a model, and the part of the plan that causes each
// cost, found by trying the plan without each part.
#ifndef PARTITA_COMPILER_DRIVER_PLAN_TRIALS_H_
#define PARTITA_COMPILER_DRIVER_PLAN_TRIALS_H_

#include <set>
#include <string>
#include <vector>

#include "compiler/driver/run_phase.h"
#include "compiler/driver/train_options.h"
#include "compiler/partition/collective_report.h"
#include "compiler/partition/padding_report.h"
#include "compiler/plan/plan.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::driver {

struct PlanCosts {
  // Collectives of all pipeline ranks.
  std::vector<partition::CollectiveUse> collectives;
  int64_t most_sent = 0;  // bytes per step, on the device that sends most
  std::vector<partition::Padding> paddings;
};

// Divides a copy of the simplified `module`, as a training step if `train` is
// given. Fails after diagnostics; `fault` says whose fault it is.
mlir::FailureOr<PlanCosts> costsUnder(mlir::ModuleOp module,
                                      const plan::Plan& plan,
                                      const TrainOptions* train, Fault& fault);

// A part of a plan as its author wrote it: "M: tensor (plan.yaml:4:5)".
std::string textOf(const plan::Plan& plan, const plan::Entry& entry,
                   const plan::ShardedDimension& division);
std::string textOf(const plan::Plan& plan, const plan::Override& override);

// The plan's divisions and overrides, each with the costs that remain without
// it.
class PlanTrials {
 public:
  // Runs costsUnder for the plan without each division and override, and prints
  // nothing. Skips a part without which the plan is refused.
  static mlir::FailureOr<PlanTrials> run(mlir::ModuleOp module,
                                         const plan::Plan& plan,
                                         const TrainOptions* train,
                                         Fault& fault);

  // The most specific part of the plan without which the cost is gone:
  // overrides come before entries, later entries before earlier ones. Empty if
  // no single part suffices.
  std::string removing(const partition::CollectiveUse& use) const;
  std::string removing(const partition::Padding& padding) const;

 private:
  struct Trial {
    std::string name;
    std::set<std::string> left;  // keys of the costs
  };

  mlir::LogicalResult add(mlir::ModuleOp module, std::string name,
                          const plan::Plan& less, const TrainOptions* train,
                          Fault& fault);
  std::string removingKey(const std::string& key) const;

  std::vector<Trial> trials_;
};

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_PLAN_TRIALS_H_
