// What a plan costs a model, and which of its parts alone each cost comes from:
// the plan tried again without each part.
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
  // Of all ranks of a pipeline.
  std::vector<partition::CollectiveUse> collectives;
  int64_t most_sent = 0;  // bytes a step, by the device that sends most
  std::vector<partition::Padding> paddings;
};

// Divides a copy of the simplified `module`; for training where `train` is
// given. Fails after diagnostics, `fault` says whose fault it is.
mlir::FailureOr<PlanCosts> costsUnder(mlir::ModuleOp module,
                                      const plan::Plan& plan,
                                      const TrainOptions* train, Fault& fault);

// A part of a plan as its author knows it: "M: tensor (plan.yaml:4:5)".
std::string textOf(const plan::Plan& plan, const plan::Entry& entry,
                   const plan::ShardedDimension& division);
std::string textOf(const plan::Plan& plan, const plan::Override& override);

// The plan's divisions and overrides, each with the costs that remain without
// it.
class PlanTrials {
 public:
  // As costsUnder, once per division and override, and silent. A part without
  // which the plan is refused is not tried.
  static mlir::FailureOr<PlanTrials> run(mlir::ModuleOp module,
                                         const plan::Plan& plan,
                                         const TrainOptions* train,
                                         Fault& fault);

  // The change that concerns least (an override is of one tensor, a later
  // division gives way to earlier ones) without which the cost is not there;
  // empty: none alone.
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
