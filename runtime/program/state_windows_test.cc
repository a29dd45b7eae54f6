#include "runtime/program/state_windows.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace partita::program {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kPage = kStatePage;

TEST(StateWindowsTest, NoStates) {
  const StatePlan plan = PlanStateWindows({}, {}, 0);
  EXPECT_THAT(plan.windows, IsEmpty());
  EXPECT_EQ(plan.Bytes(), 0);
}

// Small states share a window; sizes are rounded to pages.
TEST(StateWindowsTest, SmallStatesAreJoined) {
  const StatePlan plan = PlanStateWindows({{0, 1}, {2, 3}}, {4, 4, 8000, 1}, 0);
  ASSERT_EQ(plan.windows.size(), 1u);
  EXPECT_THAT(plan.windows[0].states, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(plan.windows[0].offsets,
              ElementsAre(0, kPage, 2 * kPage, 4 * kPage));
  EXPECT_THAT(plan.window_of_unit, ElementsAre(0, 0));
  EXPECT_THAT(plan.buffer_bytes, ElementsAre(5 * kPage, 0, 0));
}

TEST(StateWindowsTest, BuffersAreUsedInTurn) {
  const std::vector<int64_t> bytes = {kPage, 2 * kPage, kPage, kPage,
                                      2 * kPage};
  const StatePlan plan =
      PlanStateWindows({{0}, {1}, {2}, {3}, {4}}, bytes, 6 * kPage);
  ASSERT_EQ(plan.windows.size(), 4u);
  EXPECT_THAT(plan.window_of_unit, ElementsAre(0, 1, 2, 2, 3));
  EXPECT_THAT(plan.buffer_bytes, ElementsAre(2 * kPage, 2 * kPage, 2 * kPage));
  EXPECT_EQ(plan.Bytes(), 6 * kPage);
}

// A unit cannot be divided: the plan needs more than was asked for.
TEST(StateWindowsTest, LargeUnits) {
  const std::vector<int64_t> bytes(6, kPage);
  const StatePlan plan =
      PlanStateWindows({{0, 1}, {2, 3}, {4, 5}}, bytes, 3 * kPage);
  EXPECT_THAT(plan.window_of_unit, ElementsAre(0, 1, 2));
  EXPECT_EQ(plan.Bytes(), 6 * kPage);
}

// A state of a joined window counts once, and may be in later windows again.
TEST(StateWindowsTest, StatesMayRepeat) {
  const std::vector<int64_t> bytes = {kPage, kPage, kPage};
  const StatePlan plan =
      PlanStateWindows({{0, 1}, {1, 0}, {1, 2}, {0}}, bytes, 6 * kPage);
  ASSERT_EQ(plan.windows.size(), 3u);
  EXPECT_THAT(plan.window_of_unit, ElementsAre(0, 0, 1, 2));
  EXPECT_THAT(plan.windows[1].states, ElementsAre(1, 2));
}

}  // namespace
}  // namespace partita::program
