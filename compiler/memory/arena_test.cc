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
    EXPECT_LE(plan.bytes, arenaLowerBound(lifetimes) * 3 / 2);
  }
}

}  // namespace
}  // namespace partita::memory
