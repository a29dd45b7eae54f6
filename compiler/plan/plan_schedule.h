// The pipeline schedule that a plan describes.
#ifndef PARTITA_COMPILER_PLAN_PLAN_SCHEDULE_H_
#define PARTITA_COMPILER_PLAN_PLAN_SCHEDULE_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/core/mesh.h"
#include "compiler/core/schedule.h"
#include "compiler/plan/plan.h"

namespace partita::plan {

// The axes of D, most significant first. Empty if there is no pipeline. A
// device's rank in the schedule is its index along these axes.
std::vector<core::AxisRef> DepthAxes(const Plan& plan);

// Refuses `schedule` and `stages` if no axis divides D.
absl::Status CheckPipeline(const Plan& plan);

// Number of stages per device that the kind of schedule implies. 0 if the
// plan's `stages` or a table decides it.
int64_t StagesPerDevice(const Schedule& schedule);

// The schedule of the devices along D. With `trains`, it covers one training
// step (1f1b if the plan names no schedule). Otherwise it covers one forward
// run of the whole batch. core's CheckSchedule and CheckTransfers have accepted
// it. A table's path is relative to the plan file if the plan names the table,
// and to the working directory otherwise.
//
// Errors name the field. Refuses a plan without D; a file that cannot be read
// or is not a table; a table whose ranks, stages or microbatches differ from
// the plan's; a list of stages whose length is not what the schedule needs; and
// more than 2^20 cells.
absl::StatusOr<core::Schedule> ScheduleOf(const Plan& plan, bool trains);

// --- Stages with their own meshes (stage_meshes.cc) ---

// Rewrites the plan so that all stages use the plan's mesh. A stage's mesh
// orders the same devices that the plan's mesh gives to a stage, most
// significant axis first. Its axes are therefore axes of the plan's mesh or
// parts of them. An entry is split by sets of stages in which its axes mean the
// same. Example: with {data: 4, tensor: 2}, in a stage of {data: 2, tensor: 4},
// 'data' is data:(1)2, and 'tensor' is data:(2)2 followed by tensor.
//
// Refuses, at the stage, a mesh that has an axis unknown to the plan, a
// different number of devices, device_ids, or an axis that is not a product of
// parts of the plan's axes. Refuses, at the entry, a part of an axis that means
// another axis in some stage.
absl::StatusOr<Plan> DivideStages(const Plan& plan);

}  // namespace partita::plan

#endif  // PARTITA_COMPILER_PLAN_PLAN_SCHEDULE_H_
