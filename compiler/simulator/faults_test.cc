#include "compiler/simulator/faults.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace partita::simulator {
namespace {

using testing::HasSubstr;

TEST(FaultsTest, SlowDownWhatTheyName) {
  const auto faults =
      ParseFaults({"device=3:0.5", "link=1-0:0.1", "link=2:0.25"}, 4);
  ASSERT_TRUE(faults.ok()) << faults.status();
  EXPECT_DOUBLE_EQ(faults->Slowness(3), 2);
  EXPECT_DOUBLE_EQ(faults->Slowness(0), 1);
  EXPECT_DOUBLE_EQ(faults->LinkSlowness(0, 1), 10);
  EXPECT_DOUBLE_EQ(faults->LinkSlowness(1, 0), 10);
  EXPECT_DOUBLE_EQ(faults->LinkSlowness(0, 3), 1);
  EXPECT_DOUBLE_EQ(faults->LinkSlowness(3, 2), 4);
  EXPECT_DOUBLE_EQ(faults->GroupSlowness({0, 3}), 1);
  EXPECT_DOUBLE_EQ(faults->GroupSlowness({0, 1, 3}), 10);
  EXPECT_DOUBLE_EQ(faults->GroupSlowness({2, 3}), 4);
  EXPECT_DOUBLE_EQ(faults->GroupSlowness({2}), 1);
}

TEST(FaultsTest, WhatIsNoFaultIsRefused) {
  const struct {
    const char* text;
    const char* what;
  } kCases[] = {
      {"device=3", "found 'device=3'"},
      {"node=1:0.5", "link=RANK-RANK:SHARE"},
      {"device=4:0.5", "the program has ranks 0 to 3"},
      {"device=x:0.5", "'x' is no rank"},
      {"device=-1:0.5", "'-1' is no rank"},
      {"link=1-1:0.5", "a link has two ends"},
      {"link=1-:0.5", "'' is no rank"},
      {"link=0-1:0", "above 0 and at most 1"},
      {"link=0-1:2", "above 0 and at most 1"},
      {"link=0-1:nan", "above 0 and at most 1"},
      {"link=0-1:", "above 0 and at most 1"},
  };
  for (const auto& each : kCases) {
    const auto faults = ParseFaults({each.text}, 4);
    ASSERT_FALSE(faults.ok()) << each.text;
    EXPECT_THAT(faults.status().message(), HasSubstr(each.what));
  }
  EXPECT_THAT(
      ParseFaults({"link=0-1:0.5", "link=1-0:0.2"}, 4).status().message(),
      HasSubstr("the link has a fault already"));
}

}  // namespace
}  // namespace partita::simulator
