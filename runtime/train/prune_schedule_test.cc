// Shares of zeros, against the formula's values.
#include "runtime/train/prune_schedule.h"

#include <gtest/gtest.h>

#include <vector>

namespace partita::train {
namespace {

TEST(PruneSchedule, FollowsACubicCurve) {
  const PruneSchedule schedule = {10, 50, 10, 0, 0.8};
  std::vector<int64_t> steps;
  for (int64_t step = 0; step < 70; ++step)
    if (PrunesAfter(schedule, step)) steps.push_back(step);
  EXPECT_EQ(steps, (std::vector<int64_t>{10, 20, 30, 40, 50}));
  EXPECT_DOUBLE_EQ(SparsityAfter(schedule, 10), 0);
  EXPECT_DOUBLE_EQ(SparsityAfter(schedule, 20), 0.8 - 0.8 * 27 / 64);
  EXPECT_DOUBLE_EQ(SparsityAfter(schedule, 30), 0.7);
  EXPECT_DOUBLE_EQ(SparsityAfter(schedule, 40), 0.7875);
  EXPECT_DOUBLE_EQ(SparsityAfter(schedule, 50), 0.8);
}

TEST(PruneSchedule, PrunesOnceIfItBeginsAtItsEnd) {
  const PruneSchedule schedule = {3, 3, 1, 0.1, 0.5};
  EXPECT_TRUE(CheckPruneSchedule(schedule).ok());
  EXPECT_TRUE(PrunesAfter(schedule, 3));
  EXPECT_FALSE(PrunesAfter(schedule, 4));
  EXPECT_DOUBLE_EQ(SparsityAfter(schedule, 3), 0.5);
}

TEST(PruneSchedule, RefusesWrongNumbers) {
  EXPECT_TRUE(CheckPruneSchedule({0, 9, 3, 0, 1}).ok());
  EXPECT_FALSE(CheckPruneSchedule({-1, 9, 1, 0, 1}).ok());
  EXPECT_FALSE(CheckPruneSchedule({5, 4, 1, 0, 1}).ok());
  EXPECT_FALSE(CheckPruneSchedule({0, 9, 2, 0, 1}).ok());
  EXPECT_FALSE(CheckPruneSchedule({0, 9, 0, 0, 1}).ok());
  EXPECT_FALSE(CheckPruneSchedule({0, 9, 3, 0.5, 0.4}).ok());
  EXPECT_FALSE(CheckPruneSchedule({0, 9, 3, 0, 1.1}).ok());
}

}  // namespace
}  // namespace partita::train
