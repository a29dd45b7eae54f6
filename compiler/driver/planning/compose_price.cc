// The prices of two and of three layers differ by the price of one layer.
// Core's timetable of the plan's schedule puts the stages together.
#include "compiler/driver/planning/compose_price.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "compiler/core/schedule_generators.h"
#include "compiler/core/stages.h"
#include "compiler/core/timetable.h"
#include "compiler/driver/compile.h"
#include "compiler/driver/planning/batch_parts.h"
#include "compiler/plan/plan_schedule.h"
#include "compiler/plan/without_depth.h"
#include "compiler/planner/cost/cost.h"
#include "compiler/simulator/price.h"
#include "llvm/ADT/StringRef.h"
#include "runtime/program/types.h"

namespace partita::driver {
namespace {

// Layers of the smaller model.
constexpr int64_t kFew = 2;
// Share of a device's memory above which the ends of a pipeline count exactly.
constexpr double kNearlyFull = 0.9;
// The share of a layer's seconds in the small model that a lower bound counts.
constexpr double kCertainShare = 0.97;
// The operations of @main before the first layer; see
// compiler/autodiff/segments.cc.
constexpr llvm::StringRef kFirstRun = "segment_forward";
constexpr llvm::StringRef kFirstRunBack = "segment_backward";
constexpr llvm::StringRef kRun = "segment_";

// One rank's part of a step; stages have different work.
struct Rank {
  double end = 0, busy = 0, layers = 0;
  int64_t kept = 0;  // layers x microbatches in flight
};

}  // namespace

const std::optional<PriceComposer::Part>& PriceComposer::compile(
    const plan::Plan& plan, int64_t layers, int64_t microbatches,
    std::string& problem) {
  // The key has the batch, since plans with other microbatches have the same
  // text here.
  const int64_t batch = model_.batch / microbatches * plan.microbatches;
  const auto [known, is_new] =
      known_.try_emplace({plan::WritePlan(plan), {layers, batch}});
  Known& found = known->second;
  if (is_new) {
    problem.clear();
    found.part = compileNew(plan, layers, batch, problem);
    found.problem = problem;
  } else if (!found.part) {
    problem = found.problem;
  }
  return found.part;
}

std::optional<PriceComposer::Part> PriceComposer::compileNew(
    const plan::Plan& plan, int64_t layers, int64_t batch,
    std::string& problem) {
  CompileOptions options = options_;
  options.plan = plan;
  mlir::OwningOpRef<mlir::ModuleOp> step = steps(layers, batch).named(options);
  if (!step) {
    if (problem.empty())
      problem = "expected a model of which one of " + std::to_string(layers) +
                " layers can be made";
    return std::nullopt;
  }
  Compilation compilation(std::move(step), options, Milestone::kStep,
                          /*machine_code=*/false);
  compilation.keepShardingsAside();
  compilation.usePassesOf(managers_);
  if (mlir::failed(compilation.runTo(Milestone::kPlanned))) return std::nullopt;
  auto parts = artifactOf(compilation);
  if (mlir::failed(parts)) return std::nullopt;
  const auto& program =
      *flatbuffers::GetRoot<program::Program>(parts->program.data());
  auto price = simulator::PriceStep(program, cluster_);
  if (!price.ok()) {
    problem = std::string(price.status().message());
    return std::nullopt;
  }
  Part part;
  part.memory = price->memory_bytes;
  part.saved = savedBytes(program);
  for (const program::Function* function : *program.functions())
    part.instructions += program::SizeOrZero(function->body());
  double all = 0;
  for (const simulator::OperationTotal& total : price->simulation.operations) {
    const llvm::StringRef name = total.function;
    const bool back = name.contains("_backward"),
               ahead = name.contains("_forward");
    if (!back && !ahead) continue;
    all += total.seconds;
    double& sum = name == kFirstRun                 ? part.first_forward
                  : name.starts_with(kFirstRunBack) ? part.first_backward
                  : name.starts_with(kRun)
                      ? (back ? part.last_backward : part.last_forward)
                  : back ? part.backward
                         : part.forward;
    sum += total.seconds;
  }
  part.rest = std::max(0.0, price->simulation.step - all);
  return part;
}

StepCache& PriceComposer::steps(int64_t layers, int64_t batch) {
  const auto import = [this, layers, batch] {
    return model_.make(layers, batch);
  };
  return steps_.try_emplace({layers, batch}, import).first->second;
}

bool PriceComposer::isExact(const plan::Plan& plan) {
  return !plan.schedule || (plan.schedule->kind != plan::ScheduleKind::kZbH1 &&
                            plan.schedule->kind != plan::ScheduleKind::kZbV);
}

std::optional<ComposedPrice> PriceComposer::compose(const plan::Plan& plan,
                                                    double bar, int64_t room,
                                                    std::string& problem) {
  plan::Plan stage = plan::WithoutDepth(plan);
  const int64_t microbatches = plan.microbatches;
  const int64_t parts = microbatches * batchParts(plan);
  if (model_.batch % parts != 0) {
    problem = "expected a batch that can be divided by " +
              std::to_string(parts) + ", found " + std::to_string(model_.batch);
    return std::nullopt;
  }
  stage.microbatches = std::min<int64_t>(microbatches, 2);
  const double runs = static_cast<double>(stage.microbatches);
  const auto& few = compile(stage, kFew, microbatches, problem);
  if (!few) return std::nullopt;
  Rates rates;
  for (const auto& [ends, forward, backward] :
       {std::tuple(rates.first, few->first_forward, few->first_backward),
        std::tuple(rates.last, few->last_forward, few->last_backward)}) {
    ends[0] = forward / runs;
    ends[1] = backward / runs;
  }
  rates.rest = few->rest;
  rates.memory = few->memory;
  rates.saved = few->saved;
  // Layers are equal, so kFew of them take kFew times the seconds of one,
  // except for operations that run at the same time. Other layers give no
  // bound.
  if (model_.others == 0) {
    rates.layer[0] = kCertainShare * few->forward / (kFew * runs);
    rates.layer[1] = kCertainShare * few->backward / (kFew * runs);
  }
  const auto isOver = [&](std::optional<ComposedPrice>& price) {
    if (!price || price->seconds <= bar) return false;
    price->is_bound = true;
    return true;
  };
  if (bar < kAnySeconds) {
    std::optional<ComposedPrice> bound = putTogether(plan, rates, problem);
    if (isOver(bound)) {
      bound->instructions = 4 * few->instructions;
      return bound;
    }
  }
  const auto& more = compile(stage, kFew + 1, microbatches, problem);
  if (!more) return std::nullopt;
  const int64_t instructions = 2 * (few->instructions + more->instructions);
  rates.layer[0] = (more->forward - few->forward) / runs;
  rates.layer[1] = (more->backward - few->backward) / runs;
  if (model_.others > 0) {
    rates.first[0] += few->forward / runs - kFew * rates.layer[0];
    rates.first[1] += few->backward / runs - kFew * rates.layer[1];
  }
  rates.rest_of_layer = more->rest - few->rest;
  rates.memory_of_layer = more->memory - few->memory;
  // Each further microbatch adds its gradients to the sums. That time counts as
  // part of its backward pass.
  double sums_of_layer = 0, sums_of_ends = 0;
  if (microbatches > 2) {
    if (bar < kAnySeconds) {
      std::optional<ComposedPrice> bound = putTogether(plan, rates, problem);
      if (isOver(bound)) {
        bound->instructions = instructions;
        return bound;
      }
    }
    stage.microbatches = 3;
    const auto& few_longer = compile(stage, kFew, microbatches, problem);
    if (!few_longer) return std::nullopt;
    const auto& more_longer = compile(stage, kFew + 1, microbatches, problem);
    if (!more_longer) return std::nullopt;
    const double sums = std::max(0.0, few_longer->rest - few->rest),
                 more_sums = std::max(sums, more_longer->rest - more->rest);
    const double of_layer = more_sums - sums;
    const double of_ends = std::max(0.0, sums - kFew * of_layer);
    rates.rest -= sums;
    rates.rest_of_layer -= of_layer;
    rates.layer[1] += of_layer;
    rates.last[1] += of_ends;
    sums_of_layer = of_layer;
    sums_of_ends = of_ends;
  }
  std::optional<Halves> halves;
  if (!isExact(plan) && (halves = halvesOf(plan))) {
    halves->layer[1] += sums_of_layer;
    halves->last[1] += sums_of_ends;
  }
  std::optional<ComposedPrice> price =
      putTogether(plan, rates, problem, halves);
  if (price && static_cast<double>(price->memory_bytes) >
                   kNearlyFull * static_cast<double>(room))
    if (const std::optional<Bases> bases = basesOf(plan, rates))
      price = putTogether(plan, rates, problem, halves, bases);
  if (price) price->instructions = instructions;
  return price;
}

const core::Schedule* PriceComposer::scheduleOf(const plan::Plan& plan,
                                                std::string& problem) {
  const plan::Schedule given = plan.schedule.value_or(plan::Schedule());
  const bool is_file = given.kind == plan::ScheduleKind::kFile;
  const auto [known, is_new] =
      schedules_.try_emplace({core::SizeOf(plan::DepthAxes(plan)),
                              plan.microbatches, given.kind, given.chunks});
  if (!is_new && !is_file) return &known->second;
  auto table = plan::ScheduleOf(plan, /*trains=*/true);
  if (table.ok()) {
    known->second = *std::move(table);
    return &known->second;
  }
  problem = std::string(table.status().message());
  schedules_.erase(known);
  return nullptr;
}

std::optional<PriceComposer::Halves> PriceComposer::halvesOf(
    const plan::Plan& plan) {
  const std::vector<core::AxisRef> depth = plan::DepthAxes(plan);
  if (depth.size() != 1) return std::nullopt;
  plan::Plan pair = plan;
  plan::ResizeAxis(pair, depth.front().axis, 2);
  pair.schedule = plan::Schedule{plan::ScheduleKind::kZbH1};
  pair.microbatches = 2;
  pair.stages.clear();
  pair.memory.reset();
  const int64_t batch = model_.batch / plan.microbatches * pair.microbatches;
  const auto [known, is_new] =
      halves_.try_emplace({plan::WritePlan(pair), batch});
  if (is_new) known->second = measureHalves(pair, batch);
  return known->second;
}

std::optional<PriceComposer::Halves> PriceComposer::measureHalves(
    const plan::Plan& pair, int64_t batch) {
  const std::optional<Pipeline> made = compilePipeline(pair, 2 * kFew, batch);
  if (!made) return std::nullopt;
  // Calls and seconds by function.
  std::map<std::string, std::pair<double, double>> functions;
  for (const simulator::OperationTotal& total :
       made->price.simulation.operations) {
    auto& [calls, seconds] = functions[total.function];
    calls = std::max(calls, total.calls);
    seconds += total.seconds;
  }
  Halves halves;
  for (const auto& [name, total] : functions) {
    const llvm::StringRef function = name;
    const bool input = function.ends_with("_backward_input");
    if (!input && !function.ends_with("_backward_weight")) continue;
    double* cells = function.starts_with(kRun) ? halves.last : halves.layer;
    cells[input ? 0 : 1] += total.second / total.first;
  }
  if (halves.layer[0] == 0 || halves.layer[1] == 0) return std::nullopt;
  return halves;
}

std::optional<PriceComposer::Pipeline> PriceComposer::compilePipeline(
    const plan::Plan& plan, int64_t layers, int64_t batch) {
  CompileOptions options = options_;
  options.plan = plan;
  mlir::OwningOpRef<mlir::ModuleOp> module =
      steps(layers, batch).simplified(options);
  if (!module) return std::nullopt;
  Compilation model(*module, options, Milestone::kSimplified,
                    /*machine_code=*/false);
  model.usePassesOf(managers_);
  Fault fault = Fault::kUser;
  auto made = compileProgram(model, /*machine_code=*/false, fault);
  if (mlir::failed(made)) return std::nullopt;
  auto parts = artifactOf(**made);
  if (mlir::failed(parts)) return std::nullopt;
  auto price = simulator::PriceStep(
      *flatbuffers::GetRoot<program::Program>(parts->program.data()), cluster_);
  if (!price.ok()) return std::nullopt;
  return Pipeline{std::move(parts->program), *std::move(price)};
}

std::optional<ComposedPrice> PriceComposer::putTogether(
    const plan::Plan& plan, const Rates& rates, std::string& problem,
    const std::optional<Halves>& halves, const std::optional<Bases>& bases) {
  const double ahead = rates.layer[0], back = rates.layer[1];
  const bool pipeline = !plan::DepthAxes(plan).empty();
  const core::Schedule single = core::GPipe(1, 1);
  const core::Schedule* found = pipeline ? scheduleOf(plan, problem) : &single;
  if (found == nullptr) return std::nullopt;
  const core::Schedule& schedule = *found;
  const std::vector<int> layers = layersOfStages(
      schedule.stages, ahead + back, rates.first[0] + rates.first[1],
      rates.last[0] + rates.last[1]);
  if (layers.empty()) {
    problem = "expected a layer for each stage";
    return std::nullopt;
  }
  core::Costs costs;
  for (int s = 0; s < schedule.stages; ++s) {
    core::StageCost cost;
    cost.forward = layers[s] * ahead + (s == 0 ? rates.first[0] : 0) +
                   (s + 1 == schedule.stages ? rates.last[0] : 0);
    cost.backward = layers[s] * back + (s == 0 ? rates.first[1] : 0) +
                    (s + 1 == schedule.stages ? rates.last[1] : 0);
    cost.input_grad = cost.weight_grad = cost.backward / 2;
    if (halves) {
      const bool is_last = s + 1 == schedule.stages;
      cost.input_grad =
          layers[s] * halves->layer[0] + (is_last ? halves->last[0] : 0);
      // The operations before all layers need no gradient of their input.
      cost.weight_grad = layers[s] * halves->layer[1] +
                         (s == 0 ? rates.first[1] : 0) +
                         (is_last ? halves->last[1] : 0);
    }
    costs.stages.push_back(cost);
  }
  const int ranks = schedule.ranks();
  const int64_t microbatches = plan.microbatches;
  const double samples =
      static_cast<double>(model_.batch / (microbatches * batchParts(plan)));
  if (pipeline)
    costs.transfer = planner::TransferTime(
        cluster_, 0, cluster_.devices / ranks,
        samples * model_.passed_bytes *
            (plan.precision.value_or(options_.precision) ==
                     plan::Precision::kF32
                 ? 1
                 : 0.5));
  ComposedPrice price;
  std::vector<Rank> of_rank(ranks);
  const std::vector<int> in_flight = core::PeakInFlight(schedule);
  for (int s = 0; s < schedule.stages; ++s) {
    Rank& rank = of_rank[schedule.rank_of_stage[s]];
    rank.layers += layers[s];
    rank.kept += layers[s] * std::max(in_flight[s] - 1, 0);
  }
  const core::Timetable table = core::MakeTimetable(schedule, costs);
  for (int r = 0; r < ranks; ++r) {
    Rank& rank = of_rank[r];
    for (const core::TimedCell& cell : table.ranks[r]) {
      rank.end = std::max(rank.end, cell.end);
      rank.busy += cell.end - cell.start;
    }
    if (!pipeline) {
      rank.busy *= static_cast<double>(microbatches);
      rank.end = rank.busy;
    }
    const double behind =
        rates.rest + (rank.layers - kFew) * rates.rest_of_layer;
    if (rank.end + behind > price.seconds) {
      price.seconds = rank.end + behind;
      price.rest = behind;
      price.bubble = rank.end - rank.busy;
      price.forward = rank.busy * ahead / std::max(ahead + back, 1e-300);
      price.backward = rank.busy - price.forward;
    }
    int64_t base = rates.memory - kFew * rates.memory_of_layer;
    const bool has_first = schedule.rank_of_stage.front() == r,
               has_last = schedule.rank_of_stage.back() == r;
    if (bases && !(has_first && has_last))
      base = has_first ? bases->first : has_last ? bases->last : bases->middle;
    const int64_t bytes =
        base +
        static_cast<int64_t>(rank.layers *
                             static_cast<double>(rates.memory_of_layer)) +
        rank.kept * rates.saved;
    price.memory_bytes = std::max(price.memory_bytes, bytes);
  }
  return price;
}

// Balances the work of the stages.
std::vector<int> PriceComposer::layersOfStages(int stages, double layer,
                                               double first,
                                               double last) const {
  std::vector<core::Piece> pieces(model_.layers);
  for (core::Piece& piece : pieces) piece.time = layer;
  pieces.front().time += first;
  pieces.back().time += last;
  core::StageLimits limits;
  limits.stages = stages;
  auto cut = core::BalanceStages(pieces, limits);
  if (!cut.ok()) return {};
  std::vector<int> layers;
  for (int s = 0; s < stages; ++s)
    layers.push_back(
        (s + 1 < stages ? cut->first[s + 1] : static_cast<int>(model_.layers)) -
        cut->first[s]);
  return layers;
}

}  // namespace partita::driver
