// The price of a plan without compiling its whole program: a model of few
// layers is compiled, and the step is composed of its layers' prices by the
// plan's schedule. It tells plans apart in a search: where both were seen, a
// composed time was within 3 % of the simulated one, and memory 3 to 40 % less.
#ifndef PARTITA_COMPILER_DRIVER_PLANNING_COMPOSE_PRICE_H_
#define PARTITA_COMPILER_DRIVER_PLANNING_COMPOSE_PRICE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/driver/compile_options.h"
#include "compiler/driver/planning/step_cache.h"
#include "compiler/driver/run_phase.h"
#include "compiler/plan/plan.h"
#include "compiler/planner/cluster/cluster.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "runtime/program/program_generated.h"

namespace partita::driver {

// The model with so many layers that repeat, of so many samples a step,
// imported for training; null where it cannot be made.
using ModelFactory = std::function<mlir::OwningOpRef<mlir::ModuleOp>(
    int64_t layers, int64_t batch)>;

// A model whose layers repeat.
struct RepeatedModel {
  ModelFactory make;
  int64_t layers = 0, batch = 0;
  // Bytes of what a layer passes to the next, of one sample, in f32.
  double passed_bytes = 0;
};

struct ComposedPrice {
  double seconds = 0;
  double forward = 0, backward = 0;  // of all layers and ends, on one rank
  double rest = 0;    // of the slowest rank: sums, collectives, the update
  double bubble = 0;  // of the slowest rank, waiting
  int64_t memory_bytes = 0;  // of the fullest rank; ends count on each
  // What pricing it took, as if all of its programs were compiled for it alone.
  int64_t instructions = 0;
  // `seconds` is a lower bound, over the bar that was given; memory and parts
  // are unknown.
  bool is_bound = false;
};

class PriceComposer {
 public:
  // `options` as PlanPricer's.
  PriceComposer(RepeatedModel model, const CompileOptions& options,
                const planner::Cluster& cluster)
      : model_(std::move(model)), options_(options), cluster_(cluster) {}

  // False of zero-bubble schedules: their cells are other functions than those
  // of a step without depth.
  static bool composes(const plan::Plan& plan);

  // Nothing where the plan does not compile, `problem` says why. Plans that
  // differ in depth alone share what is compiled. Of a step that is longer than
  // `bar`, in seconds, a lower bound may come back, for fewer compilations.
  std::optional<ComposedPrice> compose(const plan::Plan& plan, double bar,
                                       std::string& problem);

 private:
  // Of the same step with `layers` layers and no pipeline.
  struct Part {
    double forward = 0, backward = 0;  // of layers, of all microbatches
    double first_forward = 0, first_backward = 0;  // before the layers
    double last_forward = 0, last_backward = 0;    // behind them
    double rest = 0;
    int64_t memory = 0, instructions = 0;
    int64_t saved = 0;  // of a layer and microbatch, for its backward pass
  };
  // A part, or why there is none.
  struct Known {
    std::optional<Part> part;
    std::string problem;
  };
  // What a step is put together of: seconds of one microbatch in a layer and in
  // what lies before and behind the layers ([0]: forward, [1]: backward), once
  // per step `rest`, with kFew layers, and more for each other layer.
  struct Rates {
    double layer[2] = {0, 0}, first[2] = {0, 0}, last[2] = {0, 0};
    double rest = 0, rest_of_layer = 0;
    // Bytes: of kFew layers, of one more, kept by a layer and microbatch.
    int64_t memory = 0, memory_of_layer = 0, saved = 0;
  };
  const std::optional<Part>& compile(const plan::Plan& plan, int64_t layers,
                                     int64_t microbatches,
                                     std::string& problem);
  std::optional<Part> compileNew(const plan::Plan& plan, int64_t layers,
                                 int64_t batch, std::string& problem);
  // By the timetable of the plan's schedule.
  std::optional<ComposedPrice> putTogether(const plan::Plan& plan,
                                           const Rates& rates,
                                           std::string& problem) const;
  static int64_t savedBytes(const program::Program& program);
  // [stages]; empty where there are fewer layers.
  std::vector<int> layersOfStages(int stages, double layer, double first,
                                  double last) const;

  // The model's first layers, by how many and how many samples.
  StepCache& steps(int64_t layers, int64_t batch);

  const RepeatedModel model_;
  const CompileOptions options_;
  const planner::Cluster cluster_;
  // By the plan's text, layers and batch.
  std::map<std::pair<std::string, std::pair<int64_t, int64_t>>, Known> known_;
  std::map<std::pair<int64_t, int64_t>, StepCache> steps_;
  PhaseManagers managers_;
};

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_PLANNING_COMPOSE_PRICE_H_
