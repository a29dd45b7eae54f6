// Turns the results of the planner's searches into plans.
#include "compiler/driver/planning/propose_plans.h"

#include <limits>
#include <set>
#include <utility>

#include "compiler/driver/planning/fixed_choices.h"
#include "compiler/driver/planning/vary_plan.h"
#include "compiler/planner/layers/layers.h"
#include "compiler/planner/search/write_plan.h"
#include "llvm/ADT/STLExtras.h"

namespace partita::driver {
namespace {

using absl::StatusOr;

// Upper bound on plans by layer: on uniform ones, and on mixed ones.
constexpr size_t kMostOfEach = 6;
// Factor by which estimated memory may exceed the limit.
constexpr double kMemoryMargin = 2;

// Tables of the meshes of a group of devices that have the fixed axes. If only
// the batch is divided, the tensor axis has size 1.
std::vector<planner::LayerTable> tablesOf(const planner::StepGraph& step,
                                          const planner::Cluster& group,
                                          plan::Precision precision,
                                          const planner::FixedChoices& fixed) {
  std::vector<planner::LayerTable> tables =
      planner::TabulateMeshes(step, group, precision);
  llvm::erase_if(tables, [&](const planner::LayerTable& table) {
    return (fixed.tp && *fixed.tp != table.inner) ||
           (fixed.dp && *fixed.dp != table.data);
  });
  return tables;
}

absl::Status noneHas(const planner::FixedChoices& fixed) {
  return absl::InvalidArgumentError(
      "--fix: expected choices that a plan by layer can have, found none "
      "with " +
      planner::Describe(fixed) + ": fix fewer of them");
}

}  // namespace

StatusOr<Proposals> proposePlans(const planner::Request& request,
                                 const planner::PlanNames& names) {
  StatusOr<planner::SearchResult> result = planner::Search(request);
  // Estimates of memory may be too large, so plans just over the limit are
  // tried.
  if (absl::IsResourceExhausted(result.status())) {
    planner::Request more = request;
    more.memory =
        kMemoryMargin *
        (request.memory > 0 ? request.memory : request.cluster.device.room());
    if (auto nearly = planner::Search(more); nearly.ok())
      result = std::move(nearly);
  }
  if (!result.ok()) return result.status();
  Proposals proposals;
  proposals.considered = result->considered;
  for (const planner::Choice& choice : result->choices) {
    StatusOr<plan::Plan> plan =
        planner::PlanOf(request.architecture, choice.division, names);
    if (!plan.ok()) return plan.status();
    proposals.plans.push_back(*std::move(plan));
  }
  return proposals;
}

StatusOr<Proposals> proposePlans(const planner::StepGraph& step,
                                 const planner::Cluster& cluster,
                                 plan::Precision precision, double memory,
                                 const planner::FixedChoices& fixed) {
  if (absl::Status status =
          checkFixedOfLayers(fixed, cluster.devices, step.batch);
      !status.ok())
    return status;
  const int stages = fixed.pp.value_or(1);
  StatusOr<planner::Cluster> group =
      stages == 1 ? StatusOr<planner::Cluster>(cluster)
                  : planner::Resize(cluster, cluster.devices / stages);
  if (!group.ok()) return group.status();
  const std::vector<planner::LayerTable> tables =
      tablesOf(step, *group, precision, fixed);
  if (tables.empty()) return noneHas(fixed);
  // The limit for all layers, since a rank of a pipeline has a part of them.
  StatusOr<planner::LayerResult> result =
      planner::SearchLayers(tables, stages * memory);
  // ZeRO, microbatches and recomputation may make room; estimates by layer do
  // not include them.
  if (!result.ok())
    result =
        planner::SearchLayers(tables, std::numeric_limits<double>::infinity());
  if (!result.ok()) return result.status();
  Proposals proposals;
  std::set<std::string> texts;
  const auto add = [&](const planner::LayerChoice& choice) -> absl::Status {
    StatusOr<plan::Plan> plan = planner::PlanOfLayers(
        step, tables[choice.division.table], choice.division, precision);
    if (!plan.ok()) return plan.status();
    if (stages > 1)
      *plan = withPipeline(*std::move(plan), stages, step.batch, fixed);
    applyFixed(fixed, step.batch, *plan);
    if (keepsTo(*plan, fixed, step.batch) &&
        texts.insert(plan::WritePlan(*plan)).second)
      proposals.plans.push_back(*std::move(plan));
    return absl::OkStatus();
  };
  // Alternates between both kinds, whose estimates are alike.
  for (size_t i = 0; i < kMostOfEach; ++i)
    for (const auto* choices : {&result->uniform, &result->meshes})
      if (i < choices->size())
        if (absl::Status status = add((*choices)[i]); !status.ok())
          return status;
  for (const planner::LayerTable& table : tables)
    proposals.considered += static_cast<int64_t>(table.costs.size()) *
                            static_cast<int64_t>(table.offered.size());
  if (proposals.plans.empty()) return noneHas(fixed);
  return proposals;
}

}  // namespace partita::driver
