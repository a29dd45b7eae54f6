// Whether a schedule can run, whoever made it.
#ifndef PARTITA_COMPILER_CORE_CHECK_SCHEDULE_H_
#define PARTITA_COMPILER_CORE_CHECK_SCHEDULE_H_

#include <vector>

#include "absl/status/status.h"
#include "compiler/core/schedule.h"

namespace partita::core {

struct ScheduleLimits {
  // The most microbatches in flight, PeakInFlight's measure, per stage; empty:
  // any number.
  std::vector<int> in_flight;
};

// Refuses a schedule unless
//   - every stage has a rank, and a rank has cells of its own stages only;
//   - every stage's forward, input gradient and weight gradient of every
//     microbatch is computed just once, the gradients by one B or by an I and
//     a W; where it does not train, the forward, and no gradient;
//   - the ranks, each working through its cells and waiting for what a cell
//     needs, reach the end;
//   - no stage has more in flight than the limit;
//   - where it does not flush: no microbatch is more than twice the number of
//     stages ahead of its period's; backwards use the version of the weights
//     that their forward used, and none that is not there yet; where it does:
//     all versions are 0.
// The error names rank and cell (the first is cell 1; of a schedule that does
// not flush: the first of the warm-up, counting on through the periods), what
// was expected and what was found.
absl::Status CheckSchedule(const Schedule& schedule,
                           const ScheduleLimits& limits = {});

}  // namespace partita::core

#endif  // PARTITA_COMPILER_CORE_CHECK_SCHEDULE_H_
