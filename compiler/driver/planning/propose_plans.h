// Plans worth pricing: the fastest ones by cheap estimates. Estimates only
// choose what is compiled; users never see them.
#ifndef PARTITA_COMPILER_DRIVER_PLANNING_PROPOSE_PLANS_H_
#define PARTITA_COMPILER_DRIVER_PLANNING_PROPOSE_PLANS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/driver/planning/find_architecture.h"
#include "compiler/plan/plan.h"
#include "compiler/planner/layers/step_graph.h"
#include "compiler/planner/search/search.h"

namespace partita::driver {

struct Proposals {
  std::vector<plan::Plan> plans;  // the most promising first
  int64_t considered = 0;         // divisions that were estimated
};

// For a transformer with identical layers: the best plan on each of several
// meshes.
absl::StatusOr<Proposals> proposePlans(const planner::Request& request,
                                       const planner::PlanNames& names);

// For any step, by its layers: one mapping for all layers, or one for each, in
// a pipeline if `fixed` asks for one. `memory` is in bytes per device. Refuses
// fixed choices that no such plan can have.
absl::StatusOr<Proposals> proposePlans(const planner::StepGraph& step,
                                       const planner::Cluster& cluster,
                                       plan::Precision precision, double memory,
                                       const planner::FixedChoices& fixed);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_PLANNING_PROPOSE_PLANS_H_
