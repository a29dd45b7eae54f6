// Prices a plan without compiling its whole program: compiles a model of few
// layers and composes the step of its layers' prices by the plan's schedule.
// This tells plans apart in a search: where both were measured, a composed time
// was within 3 % of the simulated one, and composed memory was 3 to 40 % too
// low.
#ifndef PARTITA_COMPILER_DRIVER_PLANNING_COMPOSE_PRICE_H_
#define PARTITA_COMPILER_DRIVER_PLANNING_COMPOSE_PRICE_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "compiler/core/schedule.h"
#include "compiler/driver/compile_options.h"
#include "compiler/driver/planning/step_cache.h"
#include "compiler/driver/run_phase.h"
#include "compiler/plan/plan.h"
#include "compiler/planner/cluster/cluster.h"
#include "compiler/simulator/price.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "runtime/program/program_generated.h"

namespace partita::driver {

// A limit of a plan's seconds that excludes no plan.
inline constexpr double kAnySeconds = std::numeric_limits<double>::infinity();

// Makes the model with this many repeated layers and this many samples per
// step, imported for training. Returns null if it cannot be made.
using ModelFactory = std::function<mlir::OwningOpRef<mlir::ModuleOp>(
    int64_t layers, int64_t batch)>;

// A model whose layers repeat. `others` come before them and are not made
// fewer, as the first layers of DeepSeek-V3, which have no experts.
struct RepeatedModel {
  ModelFactory make;
  int64_t layers = 0, others = 0, batch = 0;
  // Bytes that a layer passes to the next, per sample, in f32.
  double passed_bytes = 0;
};

struct ComposedPrice {
  double seconds = 0;
  double forward = 0, backward = 0;  // of all layers and ends, on one rank
  double rest = 0;    // of the slowest rank: sums, collectives, the update
  double bubble = 0;  // of the slowest rank, waiting
  int64_t memory_bytes = 0;  // of the fullest rank
  // Instructions of all its programs, as if they were compiled for it alone.
  int64_t instructions = 0;
  // `seconds` is a lower bound, above the given bar; memory and parts are
  // unknown.
  bool is_bound = false;
};

class PriceComposer {
 public:
  // `options` are as in PlanPricer.
  PriceComposer(RepeatedModel model, const CompileOptions& options,
                const planner::Cluster& cluster)
      : model_(std::move(model)), options_(options), cluster_(cluster) {}

  // False for zero-bubble schedules, whose composed prices are less accurate: a
  // pipeline of two stages gives the times of their cells.
  static bool isExact(const plan::Plan& plan);

  // Returns nothing if the plan does not compile; `problem` says why. Plans
  // that differ only in depth share what is compiled. If the step takes longer
  // than `bar` seconds, the result may be a lower bound, which needs fewer
  // compilations. The memory of a pipeline is estimated: each rank has both
  // ends of the model and no buffers for transfers. If that nearly fills `room`
  // bytes, a pipeline of three stages gives the memory of ends and buffers.
  std::optional<ComposedPrice> compose(const plan::Plan& plan, double bar,
                                       int64_t room, std::string& problem);

 private:
  // Prices of the same step with `layers` layers and no pipeline.
  struct Part {
    double forward = 0, backward = 0;  // of layers, of all microbatches
    double first_forward = 0, first_backward = 0;  // before the layers
    double last_forward = 0, last_backward = 0;    // behind them
    double rest = 0;
    int64_t memory = 0, instructions = 0;
    int64_t saved = 0;  // per layer and microbatch, for the backward pass
  };
  // A compiled part, or the problem if it does not compile.
  struct Known {
    std::optional<Part> part;
    std::string problem;
  };
  // The times that make up a step: seconds per microbatch of one layer, and of
  // the operations before and after all layers ([0]: forward, [1]: backward);
  // once per step, `rest` with kFew layers and `rest_of_layer` for each further
  // layer.
  struct Rates {
    double layer[2] = {0, 0}, first[2] = {0, 0}, last[2] = {0, 0};
    double rest = 0, rest_of_layer = 0;
    // Bytes of kFew layers, of each further layer, and the bytes that a layer
    // keeps per microbatch for its backward pass.
    int64_t memory = 0, memory_of_layer = 0, saved = 0;
  };
  // Seconds of the cells that a zero-bubble schedule makes of a backward pass
  // ([0]: input gradient, [1]: weight gradient), per microbatch of one layer
  // and of the operations after all layers.
  struct Halves {
    double layer[2] = {0, 0}, last[2] = {0, 0};
  };
  // Bytes of a rank of a pipeline without repeated layers: of the first, a
  // middle and the last one.
  struct Bases {
    int64_t first = 0, middle = 0, last = 0;
  };
  // A program with a pipeline, and its price.
  struct Pipeline {
    std::string program;
    simulator::StepPrice price;
  };
  const std::optional<Part>& compile(const plan::Plan& plan, int64_t layers,
                                     int64_t microbatches,
                                     std::string& problem);
  std::optional<Part> compileNew(const plan::Plan& plan, int64_t layers,
                                 int64_t batch, std::string& problem);
  // The halves in a pipeline of two stages, else like the plan. None if it does
  // not compile.
  std::optional<Halves> halvesOf(const plan::Plan& plan);
  std::optional<Halves> measureHalves(const plan::Plan& pair, int64_t batch);
  std::optional<Bases> basesOf(const plan::Plan& plan, const Rates& rates);
  // Compiles `layers` layers under a plan with a pipeline.
  std::optional<Pipeline> compilePipeline(const plan::Plan& plan,
                                          int64_t layers, int64_t batch);
  // Composes the price by the timetable of the plan's schedule. Without
  // `halves`, cells for input and weight gradients are equal. Without `bases`,
  // both ends count on each rank.
  std::optional<ComposedPrice> putTogether(
      const plan::Plan& plan, const Rates& rates, std::string& problem,
      const std::optional<Halves>& halves = std::nullopt,
      const std::optional<Bases>& bases = std::nullopt);
  // The schedule of a plan with a pipeline; null if there is none, with
  // `problem`.
  const core::Schedule* scheduleOf(const plan::Plan& plan,
                                   std::string& problem);
  static int64_t savedBytes(const program::Program& program);
  // Layers of each stage; empty if there are fewer layers than stages.
  std::vector<int> layersOfStages(int stages, double layer, double first,
                                  double last) const;

  // Steps of models with few layers, by numbers of layers and samples.
  StepCache& steps(int64_t layers, int64_t batch);

  const RepeatedModel model_;
  const CompileOptions options_;
  const planner::Cluster cluster_;
  // By the plan's text, layers and batch.
  std::map<std::pair<std::string, std::pair<int64_t, int64_t>>, Known> known_;
  std::map<std::pair<int64_t, int64_t>, StepCache> steps_;
  // By the text of the pipeline of two stages and its batch.
  std::map<std::pair<std::string, int64_t>, std::optional<Halves>> halves_;
  // By ranks, microbatches, the schedule's kind and its stages per rank.
  std::map<std::tuple<int64_t, int64_t, plan::ScheduleKind, int64_t>,
           core::Schedule>
      schedules_;
  PhaseManagers managers_;
};

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_PLANNING_COMPOSE_PRICE_H_
