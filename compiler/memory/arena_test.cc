// Placements never overlap in time and space, and stay close to the lower
// bound.
#include "compiler/memory/arena.h"

#include <random>

#include "gtest/gtest.h"

namespace partita::memory {
namespace {

void expectValid(const std::vector<Lifetime>& lifetimes,
                 const ArenaPlan& plan) {
  for (size_t i = 0; i < lifetimes.size(); ++i) {
    EXPECT_EQ(plan.offsets[i] % kAlignment, 0);
    EXPECT_LE(plan.offsets[i] + lifetimes[i].bytes, plan.bytes);
    for (size_t j = 0; j < i; ++j) {
      const bool apart_in_time = lifetimes[i].last < lifetimes[j].first ||
                                 lifetimes[j].last < lifetimes[i].first;
      const bool apart_in_space =
          plan.offsets[i] + lifetimes[i].bytes <= plan.offsets[j] ||
          plan.offsets[j] + lifetimes[j].bytes <= plan.offsets[i];
      EXPECT_TRUE(apart_in_time || apart_in_space) << i << " and " << j;
    }
  }
  EXPECT_GE(plan.bytes, arenaLowerBound(lifetimes));
}

TEST(ArenaTest, EmptyNeedsNothing) { EXPECT_EQ(planArena({}).bytes, 0); }

TEST(ArenaTest, ChainOfTwoReusesMemory) {
  std::vector<Lifetime> chain;
  for (int64_t i = 0; i < 10; ++i) chain.push_back({640, i, i + 1});
  ArenaPlan plan = planArena(chain);
  expectValid(chain, plan);
  EXPECT_EQ(plan.bytes, 1280);
}

// Each case has gaps in all orders but one, and one case in every order that is
// tried only once.
TEST(ArenaTest, TheOrderThatLeavesNoGapsIsFound) {
  const std::vector<std::vector<Lifetime>> cases = {
      {{256, 4, 4}, {128, 3, 6}, {192, 0, 3}, {128, 2, 3}, {192, 1, 4}},
      {{256, 1, 4}, {128, 3, 6}, {192, 5, 6}, {192, 5, 7}, {256, 4, 5}},
      {{192, 0, 0},
       {64, 1, 4},
       {192, 0, 3},
       {256, 5, 7},
       {192, 0, 2},
       {256, 3, 4}},
      {{256, 1, 3}, {256, 3, 4}, {128, 2, 3}, {192, 1, 2}, {128, 2, 2}},
      {{64, 3, 5}, {192, 4, 5}, {192, 2, 2}, {128, 0, 3}}};
  for (const std::vector<Lifetime>& lifetimes : cases) {
    const ArenaPlan plan = planArena(lifetimes);
    expectValid(lifetimes, plan);
    EXPECT_EQ(plan.bytes, arenaLowerBound(lifetimes));
  }
}

TEST(ArenaTest, RandomLifetimesAreValidAndNearTheBound) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    std::vector<Lifetime> lifetimes;
    for (int i = 0; i < 60; ++i) {
      const int64_t first = random() % 50;
      lifetimes.push_back({static_cast<int64_t>(random() % 5000), first,
                           first + static_cast<int64_t>(random() % 8)});
    }
    ArenaPlan plan = planArena(lifetimes);
    expectValid(lifetimes, plan);
    EXPECT_LE(plan.bytes, arenaLowerBound(lifetimes) * 11 / 10);
  }
}

}  // namespace
}  // namespace partita::memory
