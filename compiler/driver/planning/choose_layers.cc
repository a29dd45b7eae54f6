// The planner's search over layers, as JSON and as a table.
#include "compiler/driver/planning/choose_layers.h"

#include <chrono>
#include <set>
#include <string>
#include <utility>

#include "compiler/driver/planning/search_launches.h"
#include "compiler/plan/plan.h"
#include "compiler/planner/layer_names.h"
#include "compiler/planner/write_plan.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "runtime/base/atomic_file.h"

namespace partita::driver {
namespace {

using absl::StatusOr;
using llvm::json::Array;
using llvm::json::Object;
using llvm::json::Value;
using planner::LayerChoice;
using planner::LayerTable;
using Tables = std::vector<LayerTable>;

constexpr size_t kMostAlternatives = 8;

std::string textOf(const planner::StepMapping& mapping) {
  return mapping.names.empty() ? "-" : llvm::join(mapping.names, " ");
}

// "data 4 x tensor 2: H of stages.{0,1}.*; M N V of head, stages.{2,3}.*".
std::string describe(const planner::StepGraph& step, const Tables& tables,
                     const planner::LayerDivision& division) {
  const LayerTable& table = tables[division.table];
  std::string text =
      llvm::formatv("data {0} x tensor {1}", table.data, table.inner).str();
  const std::set<std::string> all(step.layers.begin(), step.layers.end());
  for (size_t m = 0; m < step.mappings.size(); ++m) {
    std::set<std::string> layers;
    for (auto [layer, mapping] : llvm::enumerate(division.mappings))
      if (mapping == static_cast<int>(m)) layers.insert(step.layers[layer]);
    if (layers.empty()) continue;
    text += (text.find(':') == std::string::npos ? ": " : "; ") +
            textOf(step.mappings[m]) + " of " +
            (layers.size() == all.size()
                 ? "all"
                 : llvm::join(planner::PatternsOf(layers, all), ", "));
  }
  return text;
}

// The plan that a person would write for it, too.
StatusOr<plan::Plan> planOf(const LayersRequest& request, const Tables& tables,
                            const LayerChoice& choice) {
  StatusOr<plan::Plan> plan =
      planner::PlanOfLayers(request.step, tables[choice.division.table],
                            choice.division, request.precision);
  if (plan.ok() && request.memory > 0)
    plan->memory = static_cast<int64_t>(request.memory);
  return plan;
}

StatusOr<Object> toJson(const LayersRequest& request, const Tables& tables,
                        const LayerChoice& choice) {
  StatusOr<plan::Plan> plan = planOf(request, tables, choice);
  if (!plan.ok()) return plan.status();
  return Object{{"division", describe(request.step, tables, choice.division)},
                {"step_seconds", choice.prediction.step},
                {"memory_bytes", choice.prediction.memory},
                {"text", plan::WritePlan(*plan)}};
}

Array layersOf(const planner::StepGraph& step, const Tables& tables,
               const planner::LayerDivision& division) {
  Array rows;
  const LayerTable& table = tables[division.table];
  for (size_t i = 0; i < step.layers.size(); ++i) {
    const int mapping = division.mappings[i];
    const planner::LayerCost& cost = table.costs[i][mapping];
    rows.push_back(Object{
        {"name", step.layers[i]},
        {"mapping", textOf(step.mappings[mapping])},
        {"compute_seconds", cost.compute},
        {"collectives_seconds", cost.collectives},
        {"gradients_seconds", cost.gradients},
        {"boundary_seconds",
         i == 0 ? 0 : table.boundaries[i][division.mappings[i - 1]][mapping]},
        {"memory_bytes", cost.memory}});
  }
  return rows;
}

// Uniform divisions first, as they are what a person would write, then the best
// of other meshes; of those that are the same plan one, none that is `chosen`.
StatusOr<Array> alternativesTo(const planner::LayerResult& result,
                               const LayersRequest& request,
                               const Tables& tables, std::string chosen) {
  Array rows;
  std::set<std::string> plans = {std::move(chosen)};
  for (const auto* choices : {&result.uniform, &result.meshes}) {
    size_t left = kMostAlternatives;
    for (const LayerChoice& choice : *choices) {
      if (left == 0) break;
      StatusOr<Object> row = toJson(request, tables, choice);
      if (!row.ok()) return row.status();
      if (!plans.insert(row->getString("text")->str()).second) continue;
      --left;
      (*row)["slower"] =
          choice.prediction.step / result.best.prediction.step - 1;
      (*row)["uniform"] = choices == &result.uniform;
      rows.push_back(*std::move(row));
    }
  }
  return rows;
}

Array pricesOf(const LaunchSearch& search) {
  Array rows;
  for (const MeshPrice& price : search.prices)
    rows.push_back(Object{{"data", price.data},
                          {"tensor", price.inner},
                          {"least_seconds", price.seconds},
                          {"compiled", price.compiled}});
  return rows;
}

// How many meshes were looked at, how, and how far from the best the choice may
// be.
void printSearch(const Object& facts, llvm::raw_ostream& stream) {
  int64_t compiled = 0, formulas = 0;
  for (const Value& mesh : *facts.getArray("meshes"))
    ++(mesh.getAsObject()->getBoolean("compiled").value_or(false) ? compiled
                                                                  : formulas);
  stream << llvm::formatv("\n{0} {1} compiled", compiled,
                          compiled == 1 ? "mesh" : "meshes");
  if (formulas > 0) stream << ", " << formulas << " judged by formulas alone,";
  stream << llvm::formatv(
      " in {0:f2} s: by these costs none is more than {1:f1} % faster\n",
      facts.getNumber("search_seconds").value_or(0),
      100 * facts.getNumber("gap").value_or(0));
  if (const int64_t failed = facts.getInteger("not_compiled").value_or(0);
      failed > 0)
    stream << failed << " divisions do not compile and were left out\n";
}

}  // namespace

StatusOr<Value> chooseLayers(const LayersRequest& request) {
  const auto start = std::chrono::steady_clock::now();
  const planner::StepGraph& step = request.step;
  const double memory =
      request.memory > 0 ? request.memory : request.cluster.device.room();
  const StatusOr<LaunchSearch> search = searchLaunches(request, memory);
  if (!search.ok()) return search.status();
  const std::chrono::duration<double> taken =
      std::chrono::steady_clock::now() - start;
  const Tables& tables = search->tables;
  const LayerChoice& best = search->result.best;
  StatusOr<Object> chosen = toJson(request, tables, best);
  if (!chosen.ok()) return chosen.status();
  StatusOr<Array> alternatives = alternativesTo(
      search->result, request, tables, chosen->getString("text")->str());
  if (!alternatives.ok()) return alternatives.status();
  Object facts = *std::move(chosen);
  if (!request.output.empty())
    if (absl::Status status = base::WriteFileAtomically(
            request.output, facts.getString("text")->str());
        !status.ok())
      return status;
  facts["kind"] = "plan";
  facts["cluster"] = request.cluster.name;
  facts["devices"] = request.cluster.devices;
  facts["batch"] = step.batch;
  facts["parts"] = Object{{"compute", best.prediction.compute},
                          {"collectives", best.prediction.collectives},
                          {"boundaries", best.prediction.boundaries},
                          {"gradients", best.prediction.gradients}};
  facts["because"] = request.because;
  facts["gap"] = search->result.gap;
  facts["least_seconds"] = search->least;
  facts["meshes"] = pricesOf(*search);
  facts["not_compiled"] = search->not_compiled;
  facts["search_seconds"] = taken.count();
  facts["layers"] = layersOf(step, tables, best.division);
  facts["alternatives"] = *std::move(alternatives);
  facts["output"] = request.output;
  return facts;
}

void printLayers(const Value& value, llvm::raw_ostream& stream) {
  const Object& facts = *value.getAsObject();
  const auto number = [](const Object& object, llvm::StringRef key) {
    return object.getNumber(key).value_or(0);
  };
  const auto milliseconds = [&](const Object& object, llvm::StringRef key) {
    return 1e3 * number(object, key);
  };
  stream << llvm::formatv(
                "# for {0} devices of {1}: a step of a batch of {2} in "
                "{3:f4} s, {4:f1} GB a device\n",
                facts.getInteger("devices").value_or(0),
                *facts.getString("cluster"),
                facts.getInteger("batch").value_or(0),
                number(facts, "step_seconds"),
                number(facts, "memory_bytes") / 1e9)
         << *facts.getString("text");
  if (const llvm::StringRef because = *facts.getString("because");
      !because.empty())
    stream << "\ndivided by its layers: " << because << "\n";
  stream << llvm::formatv(
      "\nchosen: {0}\n\n{1,-34} {2,-8} {3,9} {4,12} "
      "{5,10} {6,9}\n",
      *facts.getString("division"), "layer, ms", "mapping", "computes",
      "collectives", "gradients", "boundary");
  for (const Value& each : *facts.getArray("layers")) {
    const Object& layer = *each.getAsObject();
    stream << llvm::formatv(
        "{0,-34} {1,-8} {2,9:f3} {3,12:f3} {4,10:f3} "
        "{5,9:f3}\n",
        *layer.getString("name"), *layer.getString("mapping"),
        milliseconds(layer, "compute_seconds"),
        milliseconds(layer, "collectives_seconds"),
        milliseconds(layer, "gradients_seconds"),
        milliseconds(layer, "boundary_seconds"));
  }
  const Object& parts = *facts.getObject("parts");
  stream << llvm::formatv(
      "{0,-34} {1,-8} {2,9:f3} {3,12:f3} {4,10:f3} {5,9:f3}\n",
      "in all, of gradients the exposed", "", milliseconds(parts, "compute"),
      milliseconds(parts, "collectives"), milliseconds(parts, "gradients"),
      milliseconds(parts, "boundaries"));
  printSearch(facts, stream);
  if (!facts.getArray("alternatives")->empty()) stream << "\nothers:\n";
  for (const Value& each : *facts.getArray("alternatives")) {
    const Object& other = *each.getAsObject();
    stream << llvm::formatv(
        "  {0:f4} s (+{1:f1} %)  {2:f1} GB  {3}\n",
        number(other, "step_seconds"), 100 * number(other, "slower"),
        number(other, "memory_bytes") / 1e9, *other.getString("division"));
  }
  if (llvm::StringRef output = *facts.getString("output"); !output.empty())
    stream << "wrote " << output << "\n";
}

}  // namespace partita::driver
