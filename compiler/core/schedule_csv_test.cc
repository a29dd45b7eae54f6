// Tests reading, writing and refusing tables.
#include "compiler/core/schedule_csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/core/check_schedule.h"
#include "compiler/core/schedule_generators.h"
#include "compiler/core/timetable.h"

namespace partita::core {
namespace {

using testing::ElementsAre;

TEST(ScheduleCsvTest, ReadsTheExampleOfTheHeader) {
  const absl::StatusOr<Schedule> schedule = ReadScheduleCsv(
      "# 1F1B on two stages, two microbatches\n"
      "F0.0,F0.1,    ,B0.0,B0.1\r\n"
      "\n"
      "    ,F1.0,B1.0,F1.1,B1.1",
      "s.csv");
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  EXPECT_TRUE(schedule->flushes);
  EXPECT_EQ(schedule->stages, 2);
  EXPECT_EQ(schedule->microbatches, 2);
  EXPECT_THAT(schedule->rank_of_stage, ElementsAre(0, 1));
  EXPECT_EQ(schedule->cells, OneForwardOneBackward(2, 2).cells);
  EXPECT_TRUE(CheckSchedule(*schedule).ok());
}

TEST(ScheduleCsvTest, ReadsWhatItWrites) {
  for (const Schedule& schedule :
       {GPipe(3, 2), Interleaved(2, 3, 12), ZeroBubbleH1(4, 5),
        ZeroBubbleV(3, 11), *Async2bw(4, 3), Async(4, 1), Async(1, 3)}) {
    const std::string text = WriteScheduleCsv(schedule);
    const absl::StatusOr<Schedule> read = ReadScheduleCsv(text, "s.csv");
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->stages, schedule.stages);
    EXPECT_EQ(read->microbatches, schedule.microbatches);
    EXPECT_EQ(read->flushes, schedule.flushes);
    EXPECT_EQ(read->rank_of_stage, schedule.rank_of_stage);
    EXPECT_EQ(read->warm_up, schedule.warm_up);
    EXPECT_EQ(read->cells, schedule.cells);
  }
}

TEST(ScheduleCsvTest, ARankMayHaveNoCells) {
  for (const std::string& text :
       {"F0.0,B0.0\n,\nF1.0,B1.0\n", "|,F0.0,B0.0\n|\n"}) {
    const absl::StatusOr<Schedule> schedule = ReadScheduleCsv(text, "s.csv");
    ASSERT_TRUE(schedule.ok()) << schedule.status();
    EXPECT_TRUE(schedule->cells[1].empty());
    EXPECT_EQ(WriteScheduleCsv(*schedule), text);
    EXPECT_TRUE(CheckSchedule(*schedule).ok());
    const Timetable table = MakeTimetable(*schedule);
    EXPECT_EQ(table.rank_bubble[1], 1);
    EXPECT_FALSE(DrawText(table).empty());
  }
}

std::string Error(const std::string& text) {
  const absl::StatusOr<Schedule> schedule = ReadScheduleCsv(text, "s.csv");
  return schedule.ok() ? "" : std::string(schedule.status().message());
}

TEST(ScheduleCsvTest, AByteOrderMarkMeansNothing) {
  const absl::StatusOr<Schedule> marked = ReadScheduleCsv(
      "\xef\xbb\xbf"
      "F0.0,B0.0\n",
      "s.csv");
  ASSERT_TRUE(marked.ok()) << marked.status();
  EXPECT_EQ(marked->cells, ReadScheduleCsv("F0.0,B0.0\n", "s.csv")->cells);
}

TEST(ScheduleCsvTest, Refusals) {
  for (const std::string& field :
       {"X0.1", "F0", "F.1", "F0.", "F0.1x", "F0.1@1", "F-1.0", "F0.99999",
        "F9999.0", "F0 .1", "0.1", "f0.1"}) {
    EXPECT_EQ(Error("F0.0,B0.0\n\nF1.0, " + field + " ,B1.0\n"),
              "s.csv:3: field 2: expected F, B, I or W with stage and "
              "microbatch, such as F0.3, of stages to 1023 and "
              "microbatches to 4095, found '" +
                  field + "'");
  }
  EXPECT_EQ(Error("|,F0.0@--1"),
            "s.csv:1: field 2: expected F, B, I or W with stage and "
            "microbatch, such as F0.3 or F0.3@-1, of stages to 1023 and "
            "microbatches to 4095, found 'F0.0@--1'");
  EXPECT_EQ(Error("F0.0,|,B0.0\nF1.0,B1.0\n"),
            "s.csv:2: expected one field | between warm-up and period, as in "
            "other rows, found 0");
  EXPECT_EQ(Error("F0.0,B0.0\nF2.0,B2.0\n"),
            "s.csv: expected cells of every stage from 0 to 2, found none of "
            "stage 1");
  for (const std::string& nothing : {"", "# empty\n\n , ,\n", "F0.0,|\n"})
    EXPECT_EQ(Error(nothing),
              "s.csv: expected one row of cells per rank, such as F0.0,B0.0; "
              "found none");
}

}  // namespace
}  // namespace partita::core
