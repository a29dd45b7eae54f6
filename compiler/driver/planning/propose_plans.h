// Plans worth pricing: what cheap estimates take for the fastest. Estimates
// choose what is compiled, and are shown to nobody.
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

// Of a transformer whose layers are alike: the best of several meshes.
absl::StatusOr<Proposals> proposePlans(const planner::Request& request,
                                       const planner::PlanNames& names);

// Of any step, by its layers: one mapping for all of them, or one for each; in
// a pipeline where one is `fixed`. `memory` is in bytes per device. Refuses
// fixed choices that no such plan has.
absl::StatusOr<Proposals> proposePlans(const planner::StepGraph& step,
                                       const planner::Cluster& cluster,
                                       plan::Precision precision, double memory,
                                       const planner::FixedChoices& fixed);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_PLANNING_PROPOSE_PLANS_H_
