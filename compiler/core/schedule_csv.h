// A pipeline schedule as a CSV file, the user's own for instance.
//
// One row per rank, in order; its cells from left to right as ToString(Cell)
// writes them: F0.3 is the forward of stage 0 on microbatch 3, B the whole
// backward, I the input gradient, W the weight gradient. Empty fields, blank
// lines, spaces and lines that begin with # mean nothing; a lone comma is a
// rank without cells. A schedule without flushes has one field | in every row:
// before it the warm-up, after it the period, F0.3@-1 with weights of one
// update fewer than steps done (schedule.h).
//
//   # 1F1B on two stages, two microbatches
//   F0.0,F0.1,    ,B0.0,B0.1
//       ,F1.0,B1.0,F1.1,B1.1
#ifndef PARTITA_COMPILER_CORE_SCHEDULE_CSV_H_
#define PARTITA_COMPILER_CORE_SCHEDULE_CSV_H_

#include <string>

#include "absl/status/statusor.h"
#include "compiler/core/schedule.h"

namespace partita::core {

// Reads `text`; `name` is the file's, for errors, which name line and field. A
// stage belongs to the rank in whose row it first appears; the number of stages
// and microbatches is that of the highest found; forwards alone train nothing.
// Whether the schedule is sound, CheckSchedule says.
absl::StatusOr<Schedule> ReadScheduleCsv(const std::string& text,
                                         const std::string& name);

std::string WriteScheduleCsv(const Schedule& schedule);

}  // namespace partita::core

#endif  // PARTITA_COMPILER_CORE_SCHEDULE_CSV_H_
