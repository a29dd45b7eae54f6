// A schedule without a flush as the step that partita-delay-stages makes of it.
#ifndef PARTITA_COMPILER_PIPELINE_DELAYED_STEP_H_
#define PARTITA_COMPILER_PIPELINE_DELAYED_STEP_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/core/schedule.h"
#include "compiler/core/timetable.h"

namespace partita::pipeline {

// The pass's option `weights` with which its steps have the cells of the
// schedule's period, in whatever order and on whatever rank they are, a B as an
// I and a W too. Refuses periods with other cells, the first of which it names:
// steps are those in which a stage is as many microbatches ahead of its
// gradients as there are stages behind it, with the weights of async or of
// async-2bw. The schedule must pass CheckSchedule and have no flush.
absl::StatusOr<std::string> delayedWeights(const core::Schedule& schedule);

// The same step: cells bear the numbers of the microbatches as the pass marks
// them, the first that the first stage computes being 0.
core::Schedule delayedStep(const core::Schedule& schedule);

// When the cells of that step run, [rank][cell]: what another step computes is
// there from the beginning.
std::vector<std::vector<core::TimedCell>> delayedClock(
    const core::Schedule& schedule);

}  // namespace partita::pipeline

#endif  // PARTITA_COMPILER_PIPELINE_DELAYED_STEP_H_
