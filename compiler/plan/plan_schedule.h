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

}  // namespace partita::plan

#endif  // PARTITA_COMPILER_PLAN_PLAN_SCHEDULE_H_
