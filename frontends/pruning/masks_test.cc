// Pruned elements and orders, against all possibilities where there are few.
#include "frontends/pruning/masks.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace partita::pruning {
namespace {

Lines Random(int64_t outer, int64_t length, int64_t inner, unsigned seed) {
  Lines lines{outer, length, inner, {}};
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  for (int64_t i = 0; i < outer * length * inner; ++i)
    lines.values.push_back(normal(random));
  return lines;
}

std::vector<int64_t> InPlace(int64_t length) {
  std::vector<int64_t> order(length);
  std::iota(order.begin(), order.end(), int64_t{0});
  return order;
}

TEST(MasksTest, SmallestOfOneWeight) {
  Lines lines{2, 3, 1, {1, -5, 0.5f, -0.25f, 4, 1}};
  pruneSmallest({&lines}, 0.5);
  // Of the two ones, the first goes.
  EXPECT_EQ(lines.values, (std::vector<float>{0, -5, 0, 0, 4, 1}));
}

TEST(MasksTest, HalvesAreRoundedToEvenNumbers) {
  for (const auto& [sparsity, zeros] :
       {std::pair(0.5, 2), {0.3, 2}, {0.29, 1}, {0.7, 4}, {0.0, 0}, {1.0, 5}}) {
    Lines lines{1, 5, 1, {5, 4, 3, 2, 1}};
    pruneSmallest({&lines}, sparsity);
    EXPECT_EQ(std::count(lines.values.begin(), lines.values.end(), 0.0f), zeros)
        << sparsity;
  }
}

TEST(MasksTest, SmallestOfAllWeights) {
  Lines a{1, 2, 1, {1, 6}}, b{1, 4, 1, {2, 3, 9, 8}};
  pruneSmallest({&a, &b}, 0.5);
  EXPECT_EQ(a.values, (std::vector<float>{0, 6}));
  EXPECT_EQ(b.values, (std::vector<float>{0, 0, 9, 8}));
}

TEST(MasksTest, TwoOfFourAlongRowsAndColumns) {
  Lines row{1, 8, 1, {1, -4, 3, 2, 5, 6, 0, -7}};
  pruneGroups(row, 2, 4);
  EXPECT_EQ(row.values, (std::vector<float>{0, -4, 3, 0, 0, 6, 0, -7}));
  // [length, 2]
  Lines columns{1, 4, 2, {1, 8, -4, 7, 3, 6, 2, 5}};
  pruneGroups(columns, 2, 4);
  EXPECT_EQ(columns.values, (std::vector<float>{0, 8, -4, 7, 3, 0, 0, 0}));
}

TEST(MasksTest, KeptMagnitudeIsWhatPruningKeeps) {
  for (const auto& [keep, group] : {std::pair(2, 4), {1, 4}, {2, 3}}) {
    Lines lines = Random(37, 12, 3, 1);
    const double kept = keptMagnitude(lines, InPlace(12), keep, group);
    pruneGroups(lines, keep, group);
    double sum = 0;
    for (const float value : lines.values) sum += std::abs(value);
    EXPECT_NEAR(kept, sum, 1e-5 * sum);
  }
}

TEST(MasksTest, TheBestOrderOfEightIsTheBestOfAll) {
  int gains = 0;
  for (unsigned seed = 0; seed < 6; ++seed) {
    const Lines lines = Random(5, 8, 1, seed);
    std::vector<int64_t> order = InPlace(8);
    double best = 0;
    do best = std::max(best, keptMagnitude(lines, order, 2, 4));
    while (std::next_permutation(order.begin(), order.end()));
    std::vector<int64_t> found = bestOrder(lines, 2, 4);
    EXPECT_NEAR(keptMagnitude(lines, found, 2, 4), best, 1e-5 * best);
    gains += best > 1.01 * keptMagnitude(lines, InPlace(8), 2, 4);
    std::sort(found.begin(), found.end());
    EXPECT_EQ(found, InPlace(8));
  }
  EXPECT_GE(gains, 3);
}

TEST(MasksTest, LongerOrdersAreNeverWorse) {
  for (const int64_t length : {12, 32, 64})
    for (unsigned seed = 0; seed < 5; ++seed) {
      const Lines lines = Random(9, length, 1, seed);
      std::vector<int64_t> found = bestOrder(lines, 2, 4);
      const double before = keptMagnitude(lines, InPlace(length), 2, 4);
      EXPECT_GT(keptMagnitude(lines, found, 2, 4), before);
      std::sort(found.begin(), found.end());
      EXPECT_EQ(found, InPlace(length));
    }
  // Nothing to gain: each group has two zeros already.
  const Lines sparse{1, 12, 1, {1, 0, 0, 1, 1, 1, 0, 0, 0, 0, 1, 1}};
  EXPECT_EQ(bestOrder(sparse, 2, 4), InPlace(12));
}

}  // namespace
}  // namespace partita::pruning
