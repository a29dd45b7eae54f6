#include "runtime/train/zero_one_schedule.h"

#include <string>

#include "gtest/gtest.h"

namespace partita::train {
namespace {

// v, x or l per step.
std::string Kinds(const ZeroOneSchedule& schedule) {
  std::string kinds;
  for (int64_t step = 1; step <= schedule.steps; ++step)
    kinds += "vxl"[static_cast<int>(KindOf(schedule, step))];
  return kinds;
}

TEST(ZeroOneScheduleTest, IntervalsOfTheVarianceDouble) {
  ZeroOneSchedule schedule;
  schedule.steps = schedule.variance_until = 24;
  schedule.variance_doubling = 3;
  EXPECT_EQ(Kinds(schedule), "vvvvxvxvxvxxxvxxxvxxxvxx");
  schedule.variance_doubling = 1;
  EXPECT_EQ(Kinds(schedule), "vvxvxxxvxxxxxxxvxxxxxxxx");
}

TEST(ZeroOneScheduleTest, IntervalsOfExchangesDoubleUpToTheLimit) {
  ZeroOneSchedule schedule;
  schedule.steps = 22;
  schedule.variance_until = 2;
  schedule.local_doubling = 4;
  schedule.local_limit = 2;
  EXPECT_EQ(Kinds(schedule), "vvxxxxlxlxlxlxlxlxlxlx");
  schedule.local_limit = 16;
  EXPECT_EQ(Kinds(schedule), "vvxxxxlxlxlllxlllxlllx");
}

TEST(ZeroOneScheduleTest, TheLastStepsExchange) {
  ZeroOneSchedule schedule;
  schedule.steps = 14;
  schedule.variance_until = 1;
  schedule.local_doubling = 5;
  schedule.local_limit = 4;
  EXPECT_EQ(Kinds(schedule), "vxxxxxlxlxxllx");
}

}  // namespace
}  // namespace partita::train
