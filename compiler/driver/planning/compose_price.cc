// The prices of two and of three layers differ by the price of one layer.
// Core's timetable of the plan's schedule puts the stages together.
#include "compiler/driver/planning/compose_price.h"

#include <algorithm>
#include <string>
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

std::optional<PriceComposer::Part> PriceComposer::compile(
    const plan::Plan& plan, int64_t layers, int64_t microbatches,
    std::string& problem) {
  // The key has the batch, since plans with other microbatches have the same
  // text here.
  const int64_t batch = model_.batch / microbatches * plan.microbatches;
  const auto [known, is_new] =
      known_.try_emplace({plan::WritePlan(plan), {layers, batch}});
  if (!is_new) return known->second;
  CompileOptions options = options_;
  options.plan = plan;
  mlir::OwningOpRef<mlir::ModuleOp> step = steps(layers, batch).named(options);
  if (!step) return std::nullopt;
  Compilation compilation(std::move(step), options, Milestone::kStep,
                          /*machine_code=*/false);
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
  return known->second = part;
}

StepCache& PriceComposer::steps(int64_t layers, int64_t batch) {
  const auto import = [this, layers, batch] {
    return model_.make(layers, batch);
  };
  return steps_.try_emplace({layers, batch}, import).first->second;
}

// Bytes that a layer's forward call keeps for its backward call: the most that
// one forward call in @main returns.
int64_t PriceComposer::savedBytes(const program::Program& program) {
  const auto* main = program.functions()->Get(
      static_cast<unsigned>(program.entries()->Get(0)->main()));
  int64_t most = 0;
  for (unsigned i = 0; i < program::SizeOrZero(main->body()); ++i) {
    const program::Instruction& instruction = *main->body()->Get(i);
    const program::Call* call = instruction.operation_as_Call();
    if (call == nullptr) continue;
    const llvm::StringRef name =
        program.functions()
            ->Get(static_cast<unsigned>(call->function()))
            ->name()
            ->c_str();
    if (!name.contains("_forward") || name.starts_with(kRun)) continue;
    int64_t bytes = 0;
    const int64_t operands = program::SizeOrZero(instruction.operands());
    for (int64_t k = operands - instruction.outputs(); k < operands; ++k)
      bytes += instruction.operands()->Get(static_cast<unsigned>(k))->bytes();
    most = std::max(most, bytes);
  }
  return most;
}

bool PriceComposer::composes(const plan::Plan& plan) {
  return !plan.schedule || (plan.schedule->kind != plan::ScheduleKind::kZbH1 &&
                            plan.schedule->kind != plan::ScheduleKind::kZbV);
}

std::optional<ComposedPrice> PriceComposer::compose(const plan::Plan& plan,
                                                    std::string& problem) {
  if (!composes(plan)) {
    problem =
        "the price of a zero-bubble schedule cannot be composed of layer "
        "kinds: write the plan, compile it and simulate the program";
    return std::nullopt;
  }
  plan::Plan stage = plan::WithoutDepth(plan);
  const int64_t microbatches = plan.microbatches;
  const int64_t parts = microbatches * batchParts(plan);
  if (model_.batch % parts != 0) {
    problem = "expected a batch that can be divided by " +
              std::to_string(parts) + ", found " + std::to_string(model_.batch);
    return std::nullopt;
  }
  stage.microbatches = std::min<int64_t>(microbatches, 2);
  const auto few = compile(stage, kFew, microbatches, problem),
             more = compile(stage, kFew + 1, microbatches, problem);
  if (!few || !more) return std::nullopt;
  // Times per layer and microbatch, and times of the ends.
  const double runs = static_cast<double>(stage.microbatches);
  const double ahead = (more->forward - few->forward) / runs;
  double back = (more->backward - few->backward) / runs;
  double rest = few->rest, rest_of_layer = more->rest - few->rest;
  const double first[] = {few->first_forward / runs,
                          few->first_backward / runs};
  double last[] = {few->last_forward / runs, few->last_backward / runs};
  // Each further microbatch adds its gradients to the sums. That time counts as
  // part of its backward pass.
  if (microbatches > 2) {
    stage.microbatches = 3;
    const auto few_longer = compile(stage, kFew, microbatches, problem),
               more_longer = compile(stage, kFew + 1, microbatches, problem);
    if (!few_longer || !more_longer) return std::nullopt;
    const double sums = std::max(0.0, few_longer->rest - few->rest),
                 more_sums = std::max(sums, more_longer->rest - more->rest);
    const double of_layer = more_sums - sums;
    const double of_ends = std::max(0.0, sums - kFew * of_layer);
    rest -= sums;
    rest_of_layer -= of_layer;
    back += of_layer;
    last[1] += of_ends;
  }
  core::Schedule schedule;
  const bool pipeline = !plan::DepthAxes(plan).empty();
  if (pipeline) {
    auto table = plan::ScheduleOf(plan, /*trains=*/true);
    if (!table.ok()) {
      problem = std::string(table.status().message());
      return std::nullopt;
    }
    schedule = *std::move(table);
  } else {
    schedule = core::GPipe(1, 1);
  }
  const std::vector<int> layers = layersOfStages(
      schedule.stages, ahead + back, first[0] + first[1], last[0] + last[1]);
  if (layers.empty()) {
    problem = "expected a layer for each stage";
    return std::nullopt;
  }
  core::Costs costs;
  for (int s = 0; s < schedule.stages; ++s) {
    core::StageCost cost;
    cost.forward = layers[s] * ahead + (s == 0 ? first[0] : 0) +
                   (s + 1 == schedule.stages ? last[0] : 0);
    cost.backward = layers[s] * back + (s == 0 ? first[1] : 0) +
                    (s + 1 == schedule.stages ? last[1] : 0);
    cost.input_grad = cost.weight_grad = cost.backward / 2;
    costs.stages.push_back(cost);
  }
  const int ranks = schedule.ranks();
  const double samples = static_cast<double>(model_.batch / parts);
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
    const double behind = rest + (rank.layers - kFew) * rest_of_layer;
    if (rank.end + behind > price.seconds) {
      price.seconds = rank.end + behind;
      price.rest = behind;
      price.bubble = rank.end - rank.busy;
      price.forward = rank.busy * ahead / std::max(ahead + back, 1e-300);
      price.backward = rank.busy - price.forward;
    }
    const int64_t bytes =
        few->memory +
        static_cast<int64_t>((rank.layers - kFew) *
                             static_cast<double>(more->memory - few->memory)) +
        rank.kept * few->saved;
    price.memory_bytes = std::max(price.memory_bytes, bytes);
  }
  price.instructions = 2 * (few->instructions + more->instructions);
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
