// Tests where receives are awaited, and from which step on their memory is
// free.
#include "runtime/executor/arrivals.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace partita::executor {
namespace {

using testing::ElementsAre;
using testing::FieldsAre;

StepMemory Step(std::vector<std::pair<int, int>> ranges, int sender = -1) {
  StepMemory step;
  for (auto [begin, bytes] : ranges) step.ranges.push_back({begin, bytes});
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
  // The first is never read; the same holds for another sender.
  for (int sender : {0, 1})
    EXPECT_THAT(PlanArrivals({Receive(0), Step({{50, 10}}), Receive(5, sender),
                              Step({{5, 1}})}),
                ElementsAre(FieldsAre(0, 0, 2), FieldsAre(2, 2, 3)));
}

TEST(ArrivalsTest, UnknownMemoryKeepsItsPlace) {
  StepMemory unknown;
  unknown.ranges.push_back({-1, 10});
  unknown.sender = 0;
  EXPECT_THAT(PlanArrivals({Step({{0, 10}}), unknown, Step({{0, 10}})}),
              ElementsAre(FieldsAre(1, 1, 2)));
}

StepMemory Send(int begin, int receiver = 1) {
  StepMemory step = Step({{begin, 10}});
  step.receiver = receiver;
  return step;
}

testing::Matcher<const TransferEvent&> Event(int64_t before, bool begins,
                                             int64_t step) {
  return testing::AllOf(testing::Field(&TransferEvent::before, before),
                        testing::Field(&TransferEvent::begins, begins),
                        testing::Field(&TransferEvent::step, step));
}

TEST(TransferEventsTest, ReceivesAloneWhereSendsDoNotWait) {
  EXPECT_THAT(PlanReceives({Send(0), Receive(0), Step({{0, 10}})}),
              ElementsAre(Event(1, true, 1), Event(2, false, 1)));
}

TEST(TransferEventsTest, SendsEndBeforeTheirSlotIsTaken) {
  EXPECT_THAT(
      PlanTransfers({Send(0), Step({{0, 10}}), Send(0), Send(0)}, 2),
      ElementsAre(Event(0, true, 0), Event(2, true, 2), Event(3, false, 0),
                  Event(3, true, 3), Event(4, false, 2), Event(4, false, 3)));
}

TEST(TransferEventsTest, ReceiversHaveSlotsOfTheirOwn) {
  EXPECT_THAT(
      PlanTransfers({Send(0, 1), Send(0, 2), Send(0, 1)}, 1),
      ElementsAre(Event(0, true, 0), Event(1, true, 1), Event(2, false, 0),
                  Event(2, true, 2), Event(3, false, 1), Event(3, false, 2)));
}

TEST(TransferEventsTest, WhatIsReceivedIsSentOn) {
  EXPECT_THAT(PlanTransfers({Receive(0), Step({{20, 10}}), Send(0)}, 1),
              ElementsAre(Event(0, true, 0), Event(2, false, 0),
                          Event(2, true, 2), Event(3, false, 2)));
}

bool End(const std::vector<std::vector<StepMemory>>& stages, int64_t slots) {
  std::vector<std::vector<TransferEvent>> events;
  for (const auto& stage : stages)
    events.push_back(PlanTransfers(stage, slots));
  return TransfersComplete(events);
}

// Sends several tensors before there is memory for a receive.
std::vector<StepMemory> SendFirst(int sends, int next, int before) {
  std::vector<StepMemory> steps(static_cast<size_t>(sends), Send(0, next));
  for (int i = 0; i < sends; ++i) {
    steps.push_back(Step({{20, 10}}));
    steps.push_back(Receive(20, before));
  }
  return steps;
}

TEST(TransfersCompleteTest, WithEnoughSlots) {
  for (int sends : {1, 2, 3})
    for (int slots : {1, 2, 3}) {
      EXPECT_EQ(End({SendFirst(sends, 1, 1), SendFirst(sends, 0, 0)}, slots),
                slots >= sends)
          << sends << " " << slots;
      // Each of three waits for the next one.
      EXPECT_EQ(End({SendFirst(sends, 1, 2), SendFirst(sends, 2, 0),
                     SendFirst(sends, 0, 1)},
                    slots),
                slots >= sends)
          << sends << " " << slots;
    }
}

TEST(TransfersCompleteTest, WithoutAPartnerNever) {
  EXPECT_FALSE(End({{Send(0, 1)}, {}}, 1));
  EXPECT_FALSE(End({{}, {Receive(0, 0)}}, 1));
  EXPECT_TRUE(End({{Send(0, 1)}, {Receive(0, 0)}}, 1));
  EXPECT_TRUE(End({{Step({{0, 10}})}}, 1));
}

}  // namespace
}  // namespace partita::executor
