// Runs the schedule fuzz target on systematic damage: every truncation, every
// flipped bit, and every field of real schedules omitted or doubled.
#include <gtest/gtest.h>

#include <string>

#include "compiler/core/check_schedule.h"
#include "compiler/core/schedule_csv.h"
#include "tests/fuzz/replay.h"

namespace {

using partita::fuzz::ReadFile;
using partita::fuzz::Replay;

class ScheduleReplay : public testing::TestWithParam<const char*> {
 protected:
  std::string Real() {
    return ReadFile(std::string("tests/fuzz/") + GetParam());
  }
};

TEST_P(ScheduleReplay, TheRealScheduleIsGood) {
  const auto schedule = partita::core::ReadScheduleCsv(Real(), GetParam());
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  const absl::Status status = partita::core::CheckSchedule(*schedule);
  EXPECT_TRUE(status.ok()) << status;
}

TEST_P(ScheduleReplay, TruncationsAreSurvived) {
  const std::string file = Real();
  for (size_t size = 0; size <= file.size(); ++size)
    Replay(file.substr(0, size));
}

TEST_P(ScheduleReplay, FlippedBitsAreSurvived) {
  const std::string file = Real();
  for (size_t i = 0; i < file.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = file;
      bad[i] = static_cast<char>(bad[i] ^ (1 << bit));
      Replay(bad);
    }
  }
}

TEST_P(ScheduleReplay, FieldsLeftOutOrTwice) {
  const std::string file = Real();
  for (size_t from = 0; from < file.size();) {
    const size_t end = file.find_first_of(",\n", from);
    if (end == std::string::npos) break;
    const std::string field = file.substr(from, end + 1 - from);
    Replay(file.substr(0, from) + file.substr(end + 1));
    Replay(file.substr(0, from) + field + file.substr(from));
    from = end + 1;
  }
}

INSTANTIATE_TEST_SUITE_P(Files, ScheduleReplay,
                         testing::Values("schedule.csv", "schedule_async.csv"));

}  // namespace
