// Reads and writes pipeline schedules as CSV files.
//
// Each row is one rank, in order. Its cells are in the format of
// ToString(Cell): F0.3 is the forward of stage 0 on microbatch 3; B is the
// whole backward, I the input gradient, W the weight gradient. Empty fields,
// blank lines, spaces and lines that begin with # are ignored. A lone comma is
// a rank without cells. In a schedule without flushes, every row has one field
// | between the warm-up and the period. F0.3@-1 uses weights with one update
// fewer than the steps done (schedule.h).
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

// Parses `text`. Errors name the file `name`, the line and the field. A stage
// belongs to the rank in whose row it first appears. The numbers of stages and
// microbatches follow from the highest index found. A schedule with only
// forwards does not train. Does not check that the schedule can run; see
// CheckSchedule.
absl::StatusOr<Schedule> ReadScheduleCsv(const std::string& text,
                                         const std::string& name);

std::string WriteScheduleCsv(const Schedule& schedule);

}  // namespace partita::core

#endif  // PARTITA_COMPILER_CORE_SCHEDULE_CSV_H_
