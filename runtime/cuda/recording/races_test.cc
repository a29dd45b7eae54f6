// Histories of operations on two streams.
#include "runtime/cuda/recording/races.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace partita::cuda::recording {
namespace {

class RacesTest : public testing::Test {
 protected:
  struct Access {
    size_t first, bytes;
    bool writes;
  };
  RacesTest() { races_.Watch(); }
  // An operation that begins after all earlier ones of its stream, and after
  // all operations of the other stream if `waits`.
  void Run(const std::string& name, int stream,
           const std::vector<Access>& accesses, bool waits = false) {
    if (waits) clocks_[stream].Join(clocks_[1 - stream]);
    const Clock before = clocks_[stream];
    races_.Begin(name, stream, clocks_[stream].Tick(stream), before);
    for (const Access& access : accesses)
      races_.Touch(memory_ + access.first, access.bytes, access.writes);
    races_.End();
  }

  Races races_;
  Clock clocks_[2];
  char memory_[64];
};

TEST_F(RacesTest, WritesRaceWithBoth) {
  Run("a", 0, {{0, 8, true}});
  Run("b", 1, {{7, 8, false}});
  EXPECT_EQ(races_.Take(), "b reads what a writes\n");
  Run("c", 1, {{0, 1, true}}, /*waits=*/true);
  EXPECT_EQ(races_.Take(), "");
  Run("d", 0, {{0, 1, true}});
  EXPECT_EQ(races_.Take(), "d writes what c writes\n");
}

TEST_F(RacesTest, ReadsDoNotRace) {
  Run("a", 0, {{0, 8, false}});
  Run("b", 1, {{0, 8, false}});
  EXPECT_EQ(races_.Take(), "");
  Run("c", 1, {{0, 8, true}});
  EXPECT_EQ(races_.Take(), "c writes what a reads\n");
}

TEST_F(RacesTest, ALaterWriteStandsForEarlierAccesses) {
  Run("a", 0, {{0, 8, true}});
  Run("b", 0, {{0, 8, false}});
  Run("c", 0, {{0, 16, true}});
  Run("d", 1, {{4, 1, false}});
  EXPECT_EQ(races_.Take(), "d reads what c writes\n");
}

TEST_F(RacesTest, AReadDoesNotStandForAWrite) {
  Run("a", 0, {{0, 8, true}});
  Run("b", 0, {{0, 8, false}});
  Run("c", 1, {{0, 8, false}});
  EXPECT_EQ(races_.Take(), "c reads what a writes\n");
}

TEST_F(RacesTest, APartDoesNotStandForTheWhole) {
  Run("a", 0, {{0, 8, true}});
  Run("b", 0, {{0, 4, true}});
  Run("c", 1, {{6, 1, false}});
  EXPECT_EQ(races_.Take(), "c reads what a writes\n");
}

// An access of two neighbours is one range.
TEST_F(RacesTest, WhatIsFreedIsForgottenAlone) {
  for (const size_t freed : {0, 8, 16}) {
    SCOPED_TRACE(freed);
    Run("a", 0, {{0, 8, true}, {8, 8, true}, {16, 8, true}}, /*waits=*/true);
    races_.Take();
    races_.Forget(memory_ + freed, 8);
    for (const size_t place : {0, 8, 16}) {
      Run("b", 1, {{place, 8, false}});
      EXPECT_EQ(races_.Take(), place == freed ? "" : "b reads what a writes\n");
    }
  }
}

}  // namespace
}  // namespace partita::cuda::recording
