// Where receives wait, and from where on their memory is theirs.
#include "runtime/executor/arrivals.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace partita::executor {
namespace {

using testing::ElementsAre;
using testing::FieldsAre;

char memory[100];

StepMemory Step(std::vector<std::pair<int, int>> ranges, int sender = -1) {
  StepMemory step;
  for (auto [begin, bytes] : ranges)
    step.ranges.push_back({memory + begin, bytes});
  step.sender = sender;
  return step;
}

StepMemory Receive(int begin, int sender = 0) {
  return Step({{begin, 10}}, sender);
}

TEST(ArrivalsTest, MemoryIsExpectedWhenFreeAndAwaitedWhenUsed) {
  EXPECT_THAT(
      PlanArrivals({Step({{15, 2}, {50, 10}}), Step({{20, 10}}), Receive(10),
                    Step({{20, 10}}), Step({{19, 1}}), Step({{10, 10}})}),
      ElementsAre(FieldsAre(2, 1, 4)));
}

TEST(ArrivalsTest, UnusedMemoryIsTheSendersAllTheTime) {
  EXPECT_THAT(PlanArrivals({Step({{0, 10}}), Receive(10), Step({{20, 10}})}),
              ElementsAre(FieldsAre(1, 0, 3)));
}

TEST(ArrivalsTest, OneSendersKeepTheirOrder) {
  // The second could be expected from the start, the first awaited at the end.
  EXPECT_THAT(PlanArrivals({Step({{0, 10}}), Receive(0), Receive(10),
                            Step({{10, 10}}), Step({{0, 10}})}),
              ElementsAre(FieldsAre(1, 1, 3), FieldsAre(2, 1, 3)));
}

TEST(ArrivalsTest, SendersDoNotWaitForEachOther) {
  EXPECT_THAT(PlanArrivals({Step({{0, 10}}), Receive(0, 1), Receive(10, 2),
                            Step({{10, 10}}), Step({{0, 10}})}),
              ElementsAre(FieldsAre(1, 1, 4), FieldsAre(2, 0, 3)));
}

TEST(ArrivalsTest, MemoryThatIsOnItsWayIsNotExpectedAgain) {
  // The first is never read; of another sender's the same holds.
  for (int sender : {0, 1})
    EXPECT_THAT(PlanArrivals({Receive(0), Step({{50, 10}}), Receive(5, sender),
                              Step({{5, 1}})}),
                ElementsAre(FieldsAre(0, 0, 2), FieldsAre(2, 2, 3)));
}

TEST(ArrivalsTest, UnknownMemoryKeepsItsPlace) {
  StepMemory unknown;
  unknown.ranges.push_back({nullptr, 10});
  unknown.sender = 0;
  EXPECT_THAT(PlanArrivals({Step({{0, 10}}), unknown, Step({{0, 10}})}),
              ElementsAre(FieldsAre(1, 1, 2)));
}

}  // namespace
}  // namespace partita::executor
