// Fuzzes a user's schedule. Any text is refused with a message, or is unchanged
// when written and read again. A schedule that passes the check gets valid
// transfers, a timetable and drawings.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "compiler/core/check_schedule.h"
#include "compiler/core/schedule_csv.h"
#include "compiler/core/timetable.h"
#include "compiler/core/transfers.h"

using namespace partita::core;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<Schedule> schedule = ReadScheduleCsv(text, "fuzz");
  if (!schedule.ok()) {
    if (schedule.status().message().empty()) abort();
    return 0;
  }
  const std::string written = WriteScheduleCsv(*schedule);
  const absl::StatusOr<Schedule> again = ReadScheduleCsv(written, "written");
  if (!again.ok() || WriteScheduleCsv(*again) != written) abort();
  const absl::Status sound = CheckSchedule(*schedule);
  if (!sound.ok()) {
    if (sound.message().empty()) abort();
    return 0;
  }
  if (!CheckSchedule(*schedule, {PeakInFlight(*schedule)}).ok()) abort();
  if (PeakVersions(*schedule).empty()) abort();
  const absl::Status moved =
      CheckTransfers(*schedule, PlaceTransfers(*schedule));
  if (!moved.ok() && schedule->flushes) abort();
  const Timetable table = MakeTimetable(*schedule);
  if (table.bubble < 0 || table.bubble > 1) abort();
  if (DrawText(table).empty() || DrawSvg(table).empty()) abort();
  return 0;
}
