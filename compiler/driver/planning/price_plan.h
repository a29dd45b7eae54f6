// Prices a plan: compiles the model under it without machine code, and
// simulates the program on the cluster. `partita simulate` runs the same code,
// so it prints the same figures for the artifact that `partita compile` writes.
#ifndef PARTITA_COMPILER_DRIVER_PLANNING_PRICE_PLAN_H_
#define PARTITA_COMPILER_DRIVER_PLANNING_PRICE_PLAN_H_

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "compiler/driver/compilation.h"
#include "compiler/driver/compile_options.h"
#include "compiler/driver/planning/compose_price.h"
#include "compiler/driver/planning/step_cache.h"
#include "compiler/driver/run_phase.h"
#include "compiler/plan/plan.h"
#include "compiler/planner/cluster/cluster.h"
#include "compiler/simulator/price.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace partita::driver {

struct PricedPlan {
  plan::Plan plan;
  std::string text;     // as a file
  std::string program;  // the compiled program, without code
  simulator::StepPrice price;
  bool fits = false;  // within the memory limit
  // The price is composed of prices of layer kinds; `program` is empty.
  bool composed = false;
  // Composed prices only: seconds() is a lower bound, and all else is unknown.
  bool is_bound = false;
  double seconds() const { return price.simulation.step; }
};

// The --target that `partita compile` takes for a cluster's devices.
std::string targetOf(const planner::Device& device);

class PlanPricer {
 public:
  // `imported` is a model imported for training and is not changed. Of
  // `options`, only the target, the training and the overlap of collectives
  // matter. `memory_bytes` is the limit per device.
  PlanPricer(mlir::ModuleOp imported, CompileOptions options,
             planner::Cluster cluster, int64_t memory_bytes);

  // Prices may be composed of this model's layers from now on.
  void setLayers(RepeatedModel model);

  // The price that `partita simulate` prints for the compiled plan; a composed
  // price if canCompile() is false. Null if the plan does not compile for this
  // model. Remembers each plan.
  const PricedPlan* price(const plan::Plan& plan);
  // Like price(), but composed if that takes less time: for telling plans apart
  // in a search. Also null if a lower bound of the step exceeds `bar` seconds.
  const PricedPlan* rank(const plan::Plan& plan,
                         double bar = std::numeric_limits<double>::infinity());
  // A composed price for a program of any length; null if none can be composed.
  const PricedPlan* compose(const plan::Plan& plan);

  // Seconds of a step of the same program on another cluster.
  absl::StatusOr<double> secondsOn(const PricedPlan& plan,
                                   const planner::Cluster& cluster) const;

  // True if the program is too long to be compiled for each plan of a search.
  bool isLong(const plan::Plan& plan) const;
  // True if the program is short enough to be compiled for the chosen plan.
  bool canCompile(const plan::Plan& plan) const;
  int64_t memoryLimit() const { return memory_bytes_; }
  const CompileOptions& options() const { return options_; }
  // Numbers of plans: compiled, composed, and failed.
  int compiled() const { return compiled_; }
  int composed() const { return composed_; }
  int failed() const { return failed_; }
  // Calls of rank() that a lower bound has answered.
  int tooSlow() const { return too_slow_; }
  // Instructions of all programs so far: the effort of pricing, independent of
  // the machine.
  int64_t instructions() const { return instructions_; }
  // The error of the last plan that did not compile.
  const std::string& problem() const { return problem_; }

 private:
  std::unique_ptr<Compilation> describe(const CompileOptions& options);
  std::optional<PricedPlan> compile(const plan::Plan& plan);
  std::optional<PricedPlan> composed(const plan::Plan& plan, double bar);
  // True if the price can be composed of layer kinds.
  bool composes(const plan::Plan& plan) const;
  // Calls of layers in all ranks' programs.
  int64_t callsOf(const plan::Plan& plan) const;
  const PricedPlan* find(const plan::Plan& plan, bool compose, double bar);

  mlir::ModuleOp imported_;
  const CompileOptions options_;
  const planner::Cluster cluster_;
  const int64_t memory_bytes_;
  PhaseManagers managers_;
  StepCache steps_;
  // The price of a plan. Null if the plan does not compile, with the `problem`,
  // or if its step takes longer than `bound` seconds.
  struct Known {
    std::unique_ptr<PricedPlan> price;
    std::string problem;
    double bound = 0;  // 0: no bound
  };
  // By the plan's text and whether the price is composed.
  std::map<std::pair<std::string, bool>, Known> known_;
  std::optional<PriceComposer> composer_;
  int64_t layers_ = 0;  // of the repeated model; 0: unknown
  int compiled_ = 0, composed_ = 0, failed_ = 0, too_slow_ = 0;
  int64_t instructions_ = 0;
  std::string problem_;
};

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_PLANNING_PRICE_PLAN_H_
