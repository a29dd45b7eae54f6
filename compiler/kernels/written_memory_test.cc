// Each way in which a write may not be visible yet.
#include "compiler/kernels/written_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace partita::kernels {
namespace {

using testing::HasSubstr;

constexpr char kMemory[64] = {};
SharedRange Range(int begin, int end) {
  return {kMemory + begin, kMemory + end};
}

TEST(WrittenMemoryTest, SharedWritesNeedAFenceAndThenAMeeting) {
  WrittenMemory memory(2);
  memory.writeShared(1, Range(8, 16));
  EXPECT_EQ(memory.access("a box", Range(8, 9)),
            "a box of memory that thread 1 has written without a fence");
  EXPECT_EQ(memory.access("a box", Range(0, 8)), "");
  EXPECT_EQ(memory.access("a box", Range(16, 20)), "");
  memory.fence(0);  // by another thread
  EXPECT_THAT(memory.access("a box", Range(0, 64)), HasSubstr("fence"));
  memory.fence(1);
  EXPECT_EQ(memory.access("a box", Range(15, 64)),
            "a box of memory that thread 1 has written, and threads have not "
            "met since");
  memory.meet();
  EXPECT_EQ(memory.access("a box", Range(0, 64)), "");
}

TEST(WrittenMemoryTest, AMeetingBeforeTheFenceDoesNotHelp) {
  WrittenMemory memory(2);
  memory.writeShared(0, Range(0, 4));
  memory.meet();
  EXPECT_THAT(memory.access("a product", Range(0, 4)), HasSubstr("fence"));
  memory.fence(0);
  EXPECT_THAT(memory.access("a product", Range(0, 4)), HasSubstr("met"));
}

TEST(WrittenMemoryTest, AFenceDoesNotCoverLaterWrites) {
  WrittenMemory memory(1);
  memory.writeShared(0, Range(0, 4));
  memory.fence(0);
  memory.writeShared(0, Range(4, 8));
  memory.meet();
  EXPECT_EQ(memory.access("a product", Range(0, 4)), "");
  EXPECT_THAT(memory.access("a product", Range(0, 5)), HasSubstr("fence"));
}

TEST(WrittenMemoryTest, TurnsAreMetBeforeAndAfterWrites) {
  WrittenMemory memory(2);
  EXPECT_EQ(memory.awaitTurn(0, 100, 3), "");
  EXPECT_THAT(memory.writeDevice(1),
              HasSubstr("thread 0 has awaited a turn, and they have not met"));
  memory.meet();
  EXPECT_EQ(memory.writeDevice(1), "");
  EXPECT_THAT(memory.passTurn(0, 100, 4),
              HasSubstr("before it has met thread 1"));
}

TEST(WrittenMemoryTest, ATurnThatWasNotAwaitedIsNotPassed) {
  WrittenMemory memory(2);
  EXPECT_THAT(memory.passTurn(0, 100, 1), HasSubstr("without the turn"));
  EXPECT_EQ(memory.awaitTurn(0, 100, 3), "");
  EXPECT_THAT(memory.passTurn(0, 104, 4), HasSubstr("without the turn"));
  EXPECT_THAT(memory.passTurn(0, 100, 5), HasSubstr("without the turn"));
  EXPECT_EQ(memory.passTurn(0, 100, 4), "");
  EXPECT_THAT(memory.passTurn(0, 100, 4), HasSubstr("without the turn"));
}

TEST(WrittenMemoryTest, AThreadSeesItsOwnWrites) {
  WrittenMemory memory(2);
  EXPECT_EQ(memory.awaitTurn(0, 100, 0), "");
  EXPECT_EQ(memory.writeDevice(0), "");
  EXPECT_EQ(memory.passTurn(0, 100, 1), "");
  EXPECT_EQ(memory.awaitTurn(0, 104, 0), "");
  EXPECT_THAT(memory.awaitTurn(1, 108, 0), HasSubstr("awaits a turn after"));
}

}  // namespace
}  // namespace partita::kernels
