// Meshes by formulas, mappings by their launches, mixes by their programs'.
#include "compiler/driver/planning/search_launches.h"

#include <limits>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "compiler/planner/step_launch.h"
#include "compiler/planner/write_plan.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

namespace partita::driver {
namespace {

using absl::StatusOr;
using planner::LayerChoice;
using planner::LayerPrediction;
using planner::LayerResult;
using planner::LayerTable;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// So that there are others to compare with.
constexpr size_t kLeastMeshes = 4;
// Operations that are lowered in all, so that large models take seconds; one
// mesh is looked at in any case.
constexpr size_t kMostLowered = 50000;

// The step as it is compiled, in place of formulas.
class Compiled {
 public:
  explicit Compiled(const LayersRequest& request) : request_(request) {}

  // What does not compile is not offered.
  LayerTable tabulate(const LayerTable& table) {
    const planner::StepGraph& step = request_.step;
    std::vector<std::optional<planner::StepLaunches>> launches;
    for (size_t m = 0; m < step.mappings.size(); ++m)
      launches.push_back(table.offered[m] ? launchesOf(m, table)
                                          : std::nullopt);
    LayerTable made =
        planner::TabulateStep(step, request_.cluster, request_.precision,
                              table.data, table.inner, launches);
    for (size_t m = 0; m < launches.size(); ++m)
      if (!launches[m]) made.offered[m] = false;
    return made;
  }

  // Lowered so far, and if another mesh were.
  size_t operations() const {
    return (known_.size() + request_.step.mappings.size() - 1) *
           request_.step.graph.ops.size();
  }

  int failed() const {
    return static_cast<int>(llvm::count_if(
        known_, [](const auto& entry) { return !entry.second; }));
  }

 private:
  // All meshes of so many devices are one to the batch.
  const std::optional<planner::StepLaunches>& launchesOf(
      size_t mapping, const LayerTable& table) {
    const planner::StepMapping& of = request_.step.mappings[mapping];
    const int data = of.of_batch ? table.data * table.inner : table.data,
              inner = of.of_batch ? 1 : table.inner;
    const auto [known, is_new] = known_.try_emplace({mapping, data, inner});
    if (is_new) known->second = request_.launches(of, data, inner);
    return known->second;
  }

  const LayersRequest& request_;
  std::map<std::tuple<size_t, int, int>, std::optional<planner::StepLaunches>>
      known_;
};

// No division of the table that fits is faster; infinite where none fits.
double leastOf(const LayerTable& table, double memory) {
  const auto alone = planner::SearchLayers({table}, memory);
  return alone.ok() ? alone->best.prediction.step / (1 + alone->gap)
                    : kInfinity;
}

void compileMeshes(const LayersRequest& request, double memory,
                   const std::vector<LayerTable>& formulas,
                   LaunchSearch& search) {
  std::vector<std::pair<double, size_t>> order;
  for (size_t t = 0; t < formulas.size(); ++t)
    if (const double least = leastOf(formulas[t], memory); least < kInfinity)
      order.push_back({least, t});
  llvm::sort(order);
  Compiled compiled(request);
  double best = kInfinity;
  for (const auto& [formula, t] : order) {
    MeshPrice price = {formulas[t].data, formulas[t].inner, formula};
    const bool wanted =
        best == kInfinity ||
        ((search.tables.size() < kLeastMeshes || formula < best) &&
         compiled.operations() <= kMostLowered);
    if (wanted) {
      LayerTable table = compiled.tabulate(formulas[t]);
      if (!llvm::is_contained(table.offered, true)) continue;
      price.seconds = leastOf(table, memory);
      price.compiled = true;
      best = std::min(best, price.seconds);
      search.tables.push_back(std::move(table));
    }
    if (price.seconds < kInfinity) search.prices.push_back(price);
  }
  search.not_compiled = compiled.failed();
}

bool isUniform(const planner::LayerDivision& division) {
  return llvm::all_equal(division.mappings);
}

// A scope moves more than the layers that it names: what several mappings take
// is what the plan is compiled to. What is sent beyond what the layers send by
// themselves is between them.
LayerPrediction asCompiled(LayerPrediction prediction,
                           const planner::StepParts& parts) {
  prediction.compute = parts.compute;
  prediction.collectives = std::min(prediction.collectives, parts.collectives);
  prediction.boundaries = parts.collectives - prediction.collectives;
  prediction.gradients = parts.gradients;
  prediction.step = parts.total();
  return prediction;
}

absl::Status compileMixed(const LayersRequest& request, LaunchSearch& search) {
  LayerResult& result = search.result;
  std::vector<LayerChoice> mixed;
  for (LayerChoice& choice : result.meshes) {
    if (isUniform(choice.division)) continue;
    StatusOr<plan::Plan> plan = planner::PlanOfLayers(
        request.step, search.tables[choice.division.table], choice.division,
        request.precision);
    if (!plan.ok()) return plan.status();
    const auto launches = request.step_launches(*plan);
    if (!launches) {
      ++search.not_compiled;
      continue;
    }
    choice.prediction = asCompiled(
        choice.prediction, planner::PartsOfStep(request.cluster, *launches));
    mixed.push_back(choice);
  }
  llvm::sort(mixed, [](const LayerChoice& a, const LayerChoice& b) {
    return a.prediction.step < b.prediction.step;
  });
  result.meshes = std::move(mixed);
  return absl::OkStatus();
}

// What one mapping for all layers takes at the least.
double leastUniform(const std::vector<LayerTable>& tables) {
  double least = kInfinity;
  for (size_t t = 0; t < tables.size(); ++t)
    for (size_t m = 0; m < tables[t].offered.size(); ++m) {
      const auto found = planner::EvaluateLayers(
          tables, {static_cast<int>(t), std::vector<int>(tables[t].costs.size(),
                                                         static_cast<int>(m))});
      if (found.ok()) least = std::min(least, found->memory);
    }
  return least;
}

absl::Status nothingCompiles(const LaunchSearch& search, double memory) {
  std::string text =
      llvm::formatv(
          "expected a division within {0:f1} GB a device that compiles, found "
          "none: {1} were tried that do not",
          memory / 1e9, search.not_compiled)
          .str();
  if (const double least = leastUniform(search.tables); least < kInfinity)
    text += llvm::formatv(
                ", and one mapping for all layers takes {0:f1} GB at the "
                "least: give --memory as much, or take more devices",
                least / 1e9)
                .str();
  else
    text +=
        ": write a plan by hand, of which partita compile says what is in its "
        "way";
  return absl::FailedPreconditionError(text);
}

}  // namespace

StatusOr<LaunchSearch> searchLaunches(const LayersRequest& request,
                                      double memory) {
  const std::vector<LayerTable> formulas =
      planner::TabulateMeshes(request.step, request.cluster, request.precision);
  // Says what a limit lacks.
  if (auto fits = planner::SearchLayers(formulas, memory); !fits.ok())
    return fits.status();
  LaunchSearch search;
  compileMeshes(request, memory, formulas, search);
  if (search.tables.empty()) return nothingCompiles(search, memory);
  StatusOr<LayerResult> result = planner::SearchLayers(search.tables, memory);
  if (!result.ok()) return result.status();
  search.result = *std::move(result);
  if (absl::Status status = compileMixed(request, search); !status.ok())
    return status;
  LayerResult& found = search.result;
  if (found.uniform.empty() && found.meshes.empty())
    return nothingCompiles(search, memory);
  const auto step = [](const std::vector<LayerChoice>& choices) {
    return choices.empty() ? kInfinity : choices.front().prediction.step;
  };
  found.best = step(found.meshes) < step(found.uniform) ? found.meshes.front()
                                                        : found.uniform.front();
  search.least = found.best.prediction.step;
  for (const MeshPrice& price : search.prices)
    search.least = std::min(search.least, price.seconds);
  found.gap = found.best.prediction.step / search.least - 1;
  return search;
}

}  // namespace partita::driver
