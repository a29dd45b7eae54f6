// One mapping for all layers as a plan.
#ifndef PARTITA_COMPILER_DRIVER_PLANNING_MAPPING_PLAN_H_
#define PARTITA_COMPILER_DRIVER_PLANNING_MAPPING_PLAN_H_

#include "absl/status/statusor.h"
#include "compiler/plan/plan.h"
#include "compiler/planner/layers/step_graph.h"

namespace partita::driver {

// On a mesh of `data` x `tensor` devices, the first of which divides the batch.
// Axes of one device are left out, unless there is no other.
absl::StatusOr<plan::Plan> planOf(const planner::StepMapping& mapping, int data,
                                  int tensor);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_PLANNING_MAPPING_PLAN_H_
