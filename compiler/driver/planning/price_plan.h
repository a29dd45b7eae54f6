// The price of a plan: the model is compiled under it without machine code, and
// the program is simulated on the cluster. `partita simulate` prints the same
// figures of what `partita compile` writes, as both run this code.
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
  bool fits = false;  // in the limit of memory
  // The price is composed of prices of layer kinds; `program` is empty.
  bool composed = false;
  // Of a composed price: its seconds are a lower bound, and all else unknown.
  bool is_bound = false;
  double seconds() const { return price.simulation.step; }
};

// The --target that `partita compile` takes for a cluster's devices.
std::string targetOf(const planner::Device& device);

class PlanPricer {
 public:
  // `imported` is a model as imported for training, and stays as it is. Of
  // `options` the target, the training and how collectives run matter.
  // `memory_bytes` is the limit per device.
  PlanPricer(mlir::ModuleOp imported, CompileOptions options,
             planner::Cluster cluster, int64_t memory_bytes);

  // Prices may be composed of this model's layers from now on.
  void setLayers(RepeatedModel model);

  // What `partita simulate` says of the compiled plan; composed where the
  // program is longer than canCompile(). Null where the plan does not compile
  // for this model. Remembers each plan.
  const PricedPlan* price(const plan::Plan& plan);
  // The same, composed where that takes less time: to tell plans apart in a
  // search. Null, too, where a lower bound says that a step takes longer than
  // `bar`, in seconds.
  const PricedPlan* rank(const plan::Plan& plan,
                         double bar = std::numeric_limits<double>::infinity());
  // Composed whatever its length; null where it cannot be.
  const PricedPlan* compose(const plan::Plan& plan);

  // Seconds of a step of the same program on another cluster.
  absl::StatusOr<double> secondsOn(const PricedPlan& plan,
                                   const planner::Cluster& cluster) const;

  // Whether its program is too long to be compiled in a search, and whether
  // it can be for the one plan that is chosen.
  bool isLong(const plan::Plan& plan) const;
  bool canCompile(const plan::Plan& plan) const;
  int64_t memoryLimit() const { return memory_bytes_; }
  const CompileOptions& options() const { return options_; }
  // Plans by how their price was found.
  int compiled() const { return compiled_; }
  int composed() const { return composed_; }
  int failed() const { return failed_; }
  // Calls of rank() that a bound has answered.
  int tooSlow() const { return too_slow_; }
  // Instructions of all programs so far: what pricing took, whatever the
  // machine.
  int64_t instructions() const { return instructions_; }
  // Why the last plan that did not compile did not.
  const std::string& problem() const { return problem_; }

 private:
  std::unique_ptr<Compilation> describe(const CompileOptions& options);
  std::optional<PricedPlan> compile(const plan::Plan& plan);
  std::optional<PricedPlan> composed(const plan::Plan& plan, double bar);
  // Calls of layers in all ranks' programs.
  int64_t callsOf(const plan::Plan& plan) const;
  const PricedPlan* find(const plan::Plan& plan, bool compose, double bar);

  mlir::ModuleOp imported_;
  const CompileOptions options_;
  const planner::Cluster cluster_;
  const int64_t memory_bytes_;
  PhaseManagers managers_;
  StepCache steps_;
  // A plan's price; null where it does not compile, with why, or where its step
  // takes longer than `bound` seconds.
  struct Known {
    std::unique_ptr<PricedPlan> price;
    std::string problem;
    double bound = 0;
  };
  // By text and whether it is composed.
  std::map<std::pair<std::string, bool>, Known> known_;
  std::optional<PriceComposer> composer_;
  int64_t layers_ = 0;  // of the model that repeats; 0: none is known
  int compiled_ = 0, composed_ = 0, failed_ = 0, too_slow_ = 0;
  int64_t instructions_ = 0;
  std::string problem_;
};

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_PLANNING_PRICE_PLAN_H_
