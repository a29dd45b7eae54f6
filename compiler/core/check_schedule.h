// Checks that a schedule can run.
#ifndef PARTITA_COMPILER_CORE_CHECK_SCHEDULE_H_
#define PARTITA_COMPILER_CORE_CHECK_SCHEDULE_H_

#include <vector>

#include "absl/status/status.h"
#include "compiler/core/schedule.h"

namespace partita::core {

struct ScheduleLimits {
  // Upper bound per stage for microbatches in flight, as PeakInFlight counts
  // them; empty: no bound.
  std::vector<int> in_flight;
};

// Returns an error unless all of these hold:
//   - Every stage has a rank, and a rank has cells of its own stages only.
//   - Each stage computes the forward, input gradient and weight gradient of
//     each microbatch exactly once, the gradients by one B or by an I and a W.
//     A schedule that does not train has forwards only.
//   - All ranks reach the end if each runs its cells in order and waits for the
//     inputs of each cell.
//   - No stage exceeds its limit of microbatches in flight.
//   - With flushes, all versions are 0. Without flushes, no microbatch is ahead
//     of its period by more than twice the number of stages, and backwards use
//     the weight version of their forward, which must exist by then.
// The error names rank and cell, and what was expected and found. Cells count
// from 1. Without flushes the count starts in the warm-up and continues into
// the period.
absl::Status CheckSchedule(const Schedule& schedule,
                           const ScheduleLimits& limits = {});

}  // namespace partita::core

#endif  // PARTITA_COMPILER_CORE_CHECK_SCHEDULE_H_
