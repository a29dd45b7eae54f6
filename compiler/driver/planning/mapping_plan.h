// Turns one mapping for all layers into a plan.
#ifndef PARTITA_COMPILER_DRIVER_PLANNING_MAPPING_PLAN_H_
#define PARTITA_COMPILER_DRIVER_PLANNING_MAPPING_PLAN_H_

#include "absl/status/statusor.h"
#include "compiler/plan/plan.h"
#include "compiler/planner/layers/step_graph.h"

namespace partita::driver {

// The mesh has `data` x `tensor` devices; its axis `data` divides the batch.
// Axes of size 1 are left out, unless there is no other axis.
absl::StatusOr<plan::Plan> planOf(const planner::StepMapping& mapping, int data,
                                  int tensor);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_PLANNING_MAPPING_PLAN_H_
