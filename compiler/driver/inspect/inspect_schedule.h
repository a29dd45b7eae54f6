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

// Parses "F=1,B=2,I=1,W=1,T=0": times, in any one unit, of a forward (F), a
// whole backward (B), its gradients of inputs (I) and weights (W), and a
// transfer (T) on every stage. Entries may be in any order. Missing ones have
// the values shown here.
absl::StatusOr<core::StageCost> parseStageCost(const std::string& text,
                                               double& transfer);

// Returns "ranks", "stages", "microbatches", "rank_of_stage"; "rows", each with
// a rank's cells as in a table; "step" and "bubble" under the costs;
// "rank_bubble" per rank and "in_flight" per stage.
llvm::json::Value inspectSchedule(const core::Schedule& schedule,
                                  const core::Costs& costs);

struct ScheduleView {
  std::string costs;   // see parseStageCost
  std::string output;  // an SVG file to write instead of text; empty: none
  bool json = false;
};

// Shows the schedule on standard output, or writes the file.
absl::Status showSchedule(const core::Schedule& schedule,
                          const ScheduleView& view);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_INSPECT_INSPECT_SCHEDULE_H_
