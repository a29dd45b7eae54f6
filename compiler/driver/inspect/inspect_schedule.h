// The timetable of a pipeline, for people and for programs.
#ifndef PARTITA_COMPILER_DRIVER_INSPECT_INSPECT_SCHEDULE_H_
#define PARTITA_COMPILER_DRIVER_INSPECT_INSPECT_SCHEDULE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/core/schedule.h"
#include "compiler/core/timetable.h"
#include "llvm/Support/JSON.h"

namespace partita::driver {

// "F=1,B=2,I=1,W=1,T=0", in any order and any one unit: what a forward, a whole
// backward, its two gradients and a transfer take on every stage. What is left
// out is as it stands here, which is also what an empty text means.
absl::StatusOr<core::StageCost> parseStageCost(const std::string& text,
                                               double& transfer);

// "ranks", "stages", "microbatches", "rank_of_stage"; "rows", each a rank's
// cells as in a table; "step" and "bubble" under the costs, and for each rank
// and each stage "rank_bubble" and "in_flight".
llvm::json::Value inspectSchedule(const core::Schedule& schedule,
                                  const core::Costs& costs);

struct ScheduleView {
  std::string costs;   // as parseStageCost reads them
  std::string output;  // an SVG file to write instead of text; empty: none
  bool json = false;
};

// Shows the schedule on standard output, or writes the file.
absl::Status showSchedule(const core::Schedule& schedule,
                          const ScheduleView& view);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_INSPECT_INSPECT_SCHEDULE_H_
