// The pipeline that a plan describes.
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

// The axes of D in order, the first the most significant; none: no pipeline. A
// device's rank in the schedule is its index along them.
std::vector<core::AxisRef> DepthAxes(const Plan& plan);

// Refuses `schedule` and `stages` where nothing is divided over D.
absl::Status CheckPipeline(const Plan& plan);

// How many stages each device has, as the kind of schedule says; 0 where the
// plan's `stages` or a table says it.
int64_t StagesPerDevice(const Schedule& schedule);

// What the devices along D do and when: in a step of training, 1f1b where the
// plan names none, or, where it does not train, in one run of the whole batch.
// Sound: the core's checkers have seen it and its transfers. A table is read
// from its file, which is sought beside the plan's own if the plan names it, or
// else in the working directory.
//
// Refuses, with the field's place, a plan without D; a file that cannot be read
// or is no table; a table of other ranks, stages or microbatches than the
// plan's D, stages and microbatches are; a list of stages that is no multiple
// of the devices, or not what the schedule needs; more than 2^20 cells.
absl::StatusOr<core::Schedule> ScheduleOf(const Plan& plan, bool trains);

// --- Stages with meshes of their own (stage_meshes.cc) ---

// The same plan on its one mesh: a stage's mesh numbers, most significant axis
// first, the devices that the plan's has for a stage, so its axes are axes of
// that or parts of them, and an entry becomes one for the stages where its axes
// mean the same. With {data: 4, tensor: 2}, in a stage of {data: 2, tensor: 4}
// the axis 'data' is data:(1)2, and 'tensor' is data:(2)2 and then tensor.
//
// Refuses, at the stage, a mesh with an axis that the plan's has not, of
// another number of devices, with an order of them, or with an axis that is no
// product of parts of the plan's axes; and at the entry a part of an axis that
// is another one in a stage.
absl::StatusOr<Plan> DivideStages(const Plan& plan);

}  // namespace partita::plan

#endif  // PARTITA_COMPILER_PLAN_PLAN_SCHEDULE_H_
