// Tests that the search over layers is exact under a memory limit, says how
// much a limit lacks, and refuses malformed tables.
#include "compiler/planner/layers/layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace partita::planner {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

LayerTable EmptyTable(size_t layers, size_t mappings) {
  LayerTable table;
  table.costs.assign(layers, std::vector<LayerCost>(mappings));
  table.boundaries.assign(layers, std::vector<std::vector<double>>(
                                      mappings, std::vector<double>(mappings)));
  table.offered.assign(mappings, true);
  return table;
}

double BruteForce(const std::vector<LayerTable>& tables, double memory) {
  double best = 0;
  for (size_t t = 0; t < tables.size(); ++t) {
    const size_t layers = tables[t].costs.size(),
                 mappings = tables[t].offered.size();
    const int combinations = static_cast<int>(std::pow(mappings, layers));
    for (int code = 0; code < combinations; ++code) {
      LayerDivision division;
      division.table = static_cast<int>(t);
      for (size_t i = 0, rest = code; i < layers; ++i, rest /= mappings)
        division.mappings.push_back(static_cast<int>(rest % mappings));
      const auto found = EvaluateLayers(tables, division);
      if (found.ok() && found->memory <= memory &&
          (best == 0 || found->step < best))
        best = found->step;
    }
  }
  return best;
}

TEST(SearchLayers, IsExactOfSmallProblems) {
  std::mt19937 random(11);
  const auto draw = [&](double most) {
    return most * std::uniform_real_distribution<double>(0, 1)(random);
  };
  int found = 0, mixed = 0, tight = 0, exposed = 0, hidden = 0;
  for (int i = 0; i < 300; ++i) {
    const size_t layers = 1 + random() % 6, mappings = 1 + random() % 4;
    std::vector<LayerTable> tables;
    for (size_t t = 1 + random() % 3; t > 0; --t) {
      LayerTable table = EmptyTable(layers, mappings);
      for (size_t layer = 0; layer < layers; ++layer)
        for (size_t m = 0; m < mappings; ++m) {
          const double compute = draw(4);
          table.costs[layer][m] = {compute, draw(2), draw(3), 0.6 * compute,
                                   1 + draw(4)};
          for (double& between : table.boundaries[layer][m]) between = draw(1);
          table.boundaries[layer][m][m] = 0;
        }
      for (size_t m = 1; m < mappings; ++m)
        table.offered[m] = random() % 4 != 0;
      tables.push_back(std::move(table));
    }
    const double memory = double(layers) * (1 + draw(5));
    const double best = BruteForce(tables, memory);
    const absl::StatusOr<LayerResult> result = SearchLayers(tables, memory);
    if (best == 0) {
      EXPECT_FALSE(result.ok()) << i;
      ++tight;
      continue;
    }
    ASSERT_TRUE(result.ok()) << i << ": " << result.status();
    EXPECT_NEAR(result->best.prediction.step, best, 1e-9 * best) << i;
    EXPECT_EQ(result->gap, 0) << i;
    ++found;
    const std::vector<int>& chain = result->best.division.mappings;
    for (int mapping : chain) mixed += mapping != chain.front();
    (result->best.prediction.gradients > 0 ? exposed : hidden) += 1;
    for (const LayerChoice& uniform : result->uniform)
      EXPECT_GE(uniform.prediction.step,
                result->best.prediction.step * (1 - 1e-9));
  }
  EXPECT_GE(found, 200);
  EXPECT_GE(mixed, 50);
  EXPECT_GE(tight, 10);
  EXPECT_GE(exposed, 20);
  EXPECT_GE(hidden, 20);
}

// D13, nnScaler's tests/autodist/test_dp_solver.py: three operations in a
// chain, with two partitions each. Keeping the previous partition costs 0.1 and
// 0.2, changing it costs 1.
TEST(SearchLayers, D13ThreeOperationsInAChain) {
  LayerTable table = EmptyTable(3, 2);
  const double times[3][2] = {{1, 2}, {0.5, 1}, {1, 2}},
               keep[3] = {0, 0.1, 0.2};
  for (size_t i = 0; i < 3; ++i)
    for (size_t m = 0; m < 2; ++m) {
      table.costs[i][m].compute = times[i][m];
      table.costs[i][m].memory = double(m + 1);
      table.boundaries[i] = {{keep[i], 1}, {1, 0}};
    }
  const auto best = SearchLayers({table}, 80 * 1024);
  ASSERT_TRUE(best.ok());
  EXPECT_NEAR(best->best.prediction.step, 2.8, 1e-12);
  EXPECT_EQ(best->best.prediction.memory, 3);
  EXPECT_EQ(best->gap, 0);
  EXPECT_THAT(best->best.division.mappings, ElementsAre(0, 0, 0));
}

// A chain of a hundred layers with four mappings and a known best: each layer's
// cheapest mapping, because boundaries are free.
TEST(SearchLayers, TakesLongChains) {
  LayerTable table = EmptyTable(100, 4);
  double best = 0;
  for (size_t i = 0; i < 100; ++i) {
    for (size_t m = 0; m < 4; ++m)
      table.costs[i][m] = {1 + double((i + m) % 4), 0, 0.2, 0.5,
                           double((i * 7 + m * 3) % 5)};
    best += 1;
  }
  const auto result = SearchLayers({table}, 1e9);
  ASSERT_TRUE(result.ok());
  EXPECT_NEAR(result->best.prediction.step, best, 1e-9);
  EXPECT_EQ(result->uniform.size(), 4u);
}

// With random costs a long chain has more partial divisions than the search can
// follow. The result is within the reported gap, and found quickly.
TEST(SearchLayers, SaysHowFarOffItMayBe) {
  std::mt19937 random(5);
  const auto draw = [&](double most) {
    return most * std::uniform_real_distribution<double>(0, 1)(random);
  };
  LayerTable table = EmptyTable(80, 5);
  for (auto& row : table.costs)
    for (LayerCost& cost : row) cost = {draw(3), draw(1), draw(4), draw(2), 1};
  for (size_t i = 0; i < 80; ++i)
    for (size_t m = 0; m < 5; ++m) {
      table.costs[i][m].memory = 1 + draw(4);
      for (double& between : table.boundaries[i][m]) between = draw(0.5);
    }
  const auto result = SearchLayers({table}, 180);
  ASSERT_TRUE(result.ok());
  EXPECT_LE(result->best.prediction.memory, 180);
  EXPECT_GT(result->gap, 0);
  EXPECT_LT(result->gap, 0.02);
}

// A change of mapping must gain more than its gather costs.
TEST(SearchLayers, WeighsBoundaries) {
  LayerTable table = EmptyTable(3, 2);
  for (size_t i = 0; i < 3; ++i) table.costs[i][i == 1 ? 0 : 1].compute = 1;
  for (size_t i = 1; i < 3; ++i)
    table.boundaries[i][0][1] = table.boundaries[i][1][0] = 0.4;
  const auto mixed = SearchLayers({table}, 1);
  ASSERT_TRUE(mixed.ok());
  EXPECT_THAT(mixed->best.division.mappings, ElementsAre(0, 1, 0));
  EXPECT_NEAR(mixed->best.prediction.boundaries, 0.8, 1e-9);
  for (size_t i = 1; i < 3; ++i)
    table.boundaries[i][0][1] = table.boundaries[i][1][0] = 0.6;
  EXPECT_THAT(SearchLayers({table}, 1)->best.division.mappings,
              ElementsAre(0, 0, 0));
}

TEST(SearchLayers, SaysWhatIsWrong) {
  EXPECT_THAT(std::string(SearchLayers({}, 1).status().message()),
              HasSubstr("expected layers, found none"));
  LayerTable table = EmptyTable(2, 2);
  for (size_t m = 0; m < 2; ++m)
    for (size_t i = 0; i < 2; ++i)
      table.costs[i][m].memory = 1e9 * (1 + double(m));
  EXPECT_THAT(std::string(SearchLayers({table}, 0.5e9).status().message()),
              HasSubstr("expected a division within 500 MB a device, found "
                        "none: the least is 2.0 GB, 1.5 GB more"));
  EXPECT_THAT(
      std::string(EvaluateLayers({table}, {1, {0, 0}}).status().message()),
      HasSubstr("expected one of 1 tables and 2 mappings, found table 1"));
  table.offered[1] = false;
  EXPECT_THAT(
      std::string(EvaluateLayers({table}, {0, {0, 1}}).status().message()),
      HasSubstr("layer 1: mapping 1 is not offered"));
  table.costs[1].pop_back();
  EXPECT_THAT(std::string(SearchLayers({table}, 1).status().message()),
              HasSubstr("found a table of another size"));
}

}  // namespace
}  // namespace partita::planner
