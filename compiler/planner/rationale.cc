// The runners-up beside the choice, and the machine a little changed.
#include "compiler/planner/rationale.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace partita::planner {
namespace {

using absl::StatusOr;

constexpr double kGiga = 1e9;
// Parts of a step that differ by less are the same.
constexpr double kSame = 0.002;

std::string Percent(double share) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.0f %%", 100 * share);
  return text;
}

std::vector<StepPart> AllParts(const Prediction& p) {
  return {{"matrix products", p.products},
          {"attention", p.attention},
          {"memory-bound kernels", p.elementwise},
          {"launching kernels", p.host},
          {"tensor-parallel collectives", p.tensor},
          {"data-parallel collectives", p.data},
          {"pipeline bubble", p.bubble},
          {"optimizer", p.optimizer},
          {"other", p.other}};
}

std::string Signed(double share) {
  char text[32];
  std::snprintf(text, sizeof(text), "%+.1f %%", 100 * share);
  return text;
}

std::string Compare(const Prediction& chosen, const Prediction& other) {
  const std::vector<StepPart> before = AllParts(chosen),
                              after = AllParts(other);
  std::vector<StepPart> changes;
  for (size_t i = 0; i < before.size(); ++i) {
    const double change = (after[i].seconds - before[i].seconds) / chosen.step;
    if (std::abs(change) >= kSame) changes.push_back({before[i].name, change});
  }
  std::sort(changes.begin(), changes.end(),
            [](const StepPart& a, const StepPart& b) {
              return std::abs(a.seconds) > std::abs(b.seconds);
            });
  std::string text;
  constexpr size_t kShown = 3;
  for (size_t i = 0; i < std::min(changes.size(), kShown); ++i)
    text += (i > 0 ? ", " : "") + changes[i].name + " " +
            Signed(changes[i].seconds);
  return text.empty() ? "as long" : text;
}

}  // namespace

std::vector<StepPart> PartsOf(const Prediction& prediction) {
  std::vector<StepPart> parts = AllParts(prediction);
  parts.erase(
      std::remove_if(parts.begin(), parts.end(),
                     [](const StepPart& part) { return part.seconds == 0; }),
      parts.end());
  return parts;
}

StatusOr<Rationale> Rationalize(const Request& request,
                                const SearchResult& result) {
  const Choice& chosen = result.choices.front();
  const double step = chosen.prediction.step;
  Rationale rationale;
  const std::vector<StepPart> parts = PartsOf(chosen.prediction);
  const StepPart& most = *std::max_element(
      parts.begin(), parts.end(), [](const StepPart& a, const StepPart& b) {
        return a.seconds < b.seconds;
      });
  rationale.binds =
      most.name + ", " + Percent(most.seconds / step) + " of the step";
  for (size_t i = 1; i < result.choices.size(); ++i) {
    const Choice& other = result.choices[i];
    rationale.alternatives.push_back(
        {other, other.prediction.step / step - 1,
         Compare(chosen.prediction, other.prediction)});
  }

  const auto add = [&](const std::string& what, const Cluster& cluster) {
    StatusOr<Prediction> changed = Evaluate(
        request.architecture, chosen.division, cluster, *request.software);
    if (changed.ok()) rationale.gains.push_back({what, step - changed->step});
  };
  for (size_t i = 0; i < request.cluster.levels.size(); ++i) {
    Cluster cluster = request.cluster;
    cluster.levels[i].bandwidth += kGiga;
    add("1 GB/s more on " + cluster.levels[i].name, cluster);
  }
  Cluster cluster = request.cluster;
  cluster.device.memory_bandwidth += kGiga;
  add("1 GB/s more of memory bandwidth", cluster);

  Request wider = request;
  wider.meshes = 1;
  wider.memory =
      (request.memory > 0 ? request.memory : request.cluster.device.room()) +
      kGiga;
  StatusOr<SearchResult> found = Search(wider);
  if (!found.ok()) return found.status();
  const Choice& with_more = found->choices.front();
  std::string what = "1 GB more of memory";
  const double saved = std::max(0.0, step - with_more.prediction.step);
  if (saved > 0) what += " (" + Describe(with_more.division) + ")";
  rationale.gains.push_back({what, saved});
  return rationale;
}

}  // namespace partita::planner
