// Schedules without flushes, as steps of partita-delay-stages.
#ifndef PARTITA_COMPILER_PIPELINE_DELAYED_STEP_H_
#define PARTITA_COMPILER_PIPELINE_DELAYED_STEP_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/core/schedule.h"
#include "compiler/core/timetable.h"

namespace partita::pipeline {

// Returns the value of the pass's option `weights` whose steps have the cells
// of the schedule's period. Their order and ranks are free, and an I and a W
// may replace a B. Refuses periods with other cells, and names the first such
// cell. In a valid period each stage is ahead of its gradients by one
// microbatch per later stage, with the weight versions of async or async-2bw.
// The schedule must pass CheckSchedule and have no flushes.
absl::StatusOr<std::string> delayedWeights(const core::Schedule& schedule);

// Returns the same step with the microbatch numbers that the pass marks: the
// first microbatch of the first stage is 0.
core::Schedule delayedStep(const core::Schedule& schedule);

// Returns the times of that step's cells, [rank][cell]. Values of other steps
// exist from the beginning.
std::vector<std::vector<core::TimedCell>> delayedClock(
    const core::Schedule& schedule);

}  // namespace partita::pipeline

#endif  // PARTITA_COMPILER_PIPELINE_DELAYED_STEP_H_
