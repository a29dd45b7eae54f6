#include "compiler/sharding/near_names.h"

#include <gtest/gtest.h>

namespace partita::sharding {
namespace {

TEST(NearNames, TheThreeThatDifferLeast) {
  EXPECT_EQ(nearNames({"h.0.upp"}, {"x", "h.0.down", "h.0.up", "h.10.up"}),
            "'h.0.up', 'h.10.up', 'h.0.down'");
  EXPECT_EQ(nearNames({"upp"}, {"up"}), "'up'");
  EXPECT_EQ(nearNames({"upp"}, {}), "");
}

TEST(NearNames, WhatStandsAroundMayBeLeftOut) {
  EXPECT_EQ(nearNames({"stages.1.*"},
                      {"model.stages.0", "model.stages", "model.head"}),
            "'model.stages.0', 'model.stages', 'model.head'");
}

TEST(NearNames, EachOnceWhereSeveralPatternsAreNear) {
  EXPECT_EQ(nearNames({"up", "upp"}, {"up", "down"}), "'up', 'down'");
}

}  // namespace
}  // namespace partita::sharding
