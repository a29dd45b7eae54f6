#include "compiler/core/projection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace partita::core {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const Mesh kMesh{{{"a", 2}, {"b", 4}, {"c", 3}}, {}};
const AxisRef kA{0, 1, 2}, kB{1, 1, 4}, kC{2, 1, 3};

ShardingRule RuleOf(const std::vector<int64_t>& sizes) {
  ShardingRule rule;
  for (int64_t size : sizes) rule.factors.push_back({size});
  return rule;
}

TEST(ProjectionTest, MatchComparesParts) {
  AxesMatch match = MatchAxes({kB, kA}, {{1, 1, 2}});
  EXPECT_THAT(match.common, ElementsAre(AxisRef{1, 1, 2}));
  EXPECT_THAT(match.rest_a, ElementsAre(AxisRef{1, 2, 2}, kA));
  EXPECT_THAT(match.rest_b, IsEmpty());
  EXPECT_TRUE(MatchAxes({kB, kA}, {{1, 1, 2}, {1, 2, 2}, kA}).Same());
  match = MatchAxes({kA, kB}, {kA, kC});
  EXPECT_TRUE(match.Conflict());
  EXPECT_THAT(match.common, ElementsAre(kA));
  EXPECT_TRUE(MatchAxes({kB}, {{1, 2, 2}}).Conflict());
}

TEST(ProjectionTest, BeforeKeepsThePartThatIsFree) {
  EXPECT_THAT(Before({kA, kB, kC}, {kC}), ElementsAre(kA, kB));
  EXPECT_THAT(Before({kA, kB, kC}, {{1, 2, 2}}),
              ElementsAre(kA, AxisRef{1, 1, 2}));
  EXPECT_THAT(Before({kA, kB}, {{1, 1, 2}}), ElementsAre(kA));
  EXPECT_THAT(Before({kB}, {{1, 2, 2}, {1, 1, 2}}), IsEmpty());
}

TEST(ProjectionTest, SharesThatCutThroughRowsAreInexact) {
  const ShardingRule rule = RuleOf({7, 7});
  std::vector<FactorAxes> parts = ProjectDim(rule, {0, 1}, 49, {{kA}, 0});
  EXPECT_FALSE(parts[0].exact);
  EXPECT_THAT(parts[0].axes, ElementsAre(kA));
  parts = ProjectDim(rule, {0, 1}, 49, {{kA}, 28});
  EXPECT_TRUE(parts[0].exact);
  EXPECT_EQ(parts[0].block, 0);
  EXPECT_THAT(parts[1].axes, IsEmpty());
}

TEST(ProjectionTest, HeadsFewerThanShardsStayWhole) {
  // 2 heads of 6 over 4 devices: the even share is half a head each; blocks of
  // a head leave two devices empty.
  const ShardingRule rule = RuleOf({2, 6});
  std::vector<FactorAxes> parts = ProjectDim(rule, {0, 1}, 12, {{kB}, 0});
  EXPECT_THAT(parts[0].axes, ElementsAre(AxisRef{1, 1, 2}));
  EXPECT_THAT(parts[1].axes, ElementsAre(AxisRef{1, 2, 2}));
  parts = ProjectDim(rule, {0, 1}, 12, {{kB}, 6});
  EXPECT_THAT(parts[0].axes, ElementsAre(kB));
  EXPECT_THAT(parts[1].axes, IsEmpty());
}

TEST(ProjectionTest, OneFactorTakesAllEvenBeyondItsRows) {
  EXPECT_THAT(ProjectDim(RuleOf({2}), {0}, 2, {{kB, kC}, 0})[0].axes,
              ElementsAre(kB, kC));
}

// True if a device holds the row when the factors are divided as given.
bool OwnsByFactors(const ShardingRule& rule,
                   const std::vector<FactorAxes>& parts, int64_t row,
                   int64_t position) {
  for (size_t k = rule.factors.size(); k-- > 0;) {
    const int64_t size = rule.factors[k].size;
    const Interval rows =
        OwnedRows(kMesh, size, {parts[k].axes, parts[k].block}, position);
    if (row % size < rows.begin || row % size >= rows.end) return false;
    row /= size;
  }
  return true;
}

void ExpectSameRows(const ShardingRule& rule,
                    const std::vector<FactorAxes>& parts, int64_t size,
                    const DimSharding& dim) {
  for (int64_t p = 0; p < kMesh.Size(); ++p) {
    const Interval rows = OwnedRows(kMesh, size, dim, p);
    for (int64_t row = 0; row < size; ++row)
      ASSERT_EQ(row >= rows.begin && row < rows.end,
                OwnsByFactors(rule, parts, row, p))
          << ToString(kMesh, Sharding{{dim}, {}, {}}) << " row " << row
          << " of " << size << " on " << p;
  }
}

// The definition, checked element by element in both directions: a dimension
// and its factors have equal shards.
TEST(ProjectionTest, ExactProjectionsAndAssembliesHoldTheSameRows) {
  const std::vector<std::vector<AxisRef>> lists = {
      {},       {kA},     {kB},        {kC},        {kA, kB},
      {kB, kA}, {kC, kA}, {{1, 1, 2}}, {{1, 2, 2}}, {kA, {1, 2, 2}, kC},
  };
  std::mt19937 random(1);
  int projected = 0, assembled = 0, refused = 0;
  for (int trial = 0; trial < 4000; ++trial) {
    std::vector<int64_t> sizes(1 + random() % 3);
    int64_t size = 1;
    for (int64_t& factor : sizes) size *= factor = 1 + random() % 5;
    const ShardingRule rule = RuleOf(sizes);
    DimFactors factors;
    for (size_t k = 0; k < sizes.size(); ++k)
      factors.push_back(static_cast<int>(k));

    const std::vector<AxisRef>& axes = lists[random() % lists.size()];
    DimSharding dim{axes, 0};
    if (!axes.empty() && random() % 2 == 0)
      dim.block = BlockOf(size, dim) + random() % 3;
    std::vector<FactorAxes> parts = ProjectDim(rule, factors, size, dim);
    bool exact = true;
    for (const FactorAxes& part : parts) exact = exact && part.exact;
    if (exact) {
      ++projected;
      ExpectSameRows(rule, parts, size, dim);
      DimSharding back;
      ASSERT_LT(AssembleDim(kMesh, rule, factors, size, parts, back), 0);
      EXPECT_TRUE(MatchAxes(back.axes, dim.axes).Same());
      EXPECT_EQ(BlockOf(size, back), BlockOf(size, dim));
    }

    parts.assign(sizes.size(), {});
    Sharding used;
    for (FactorAxes& part : parts) {
      const std::vector<AxisRef>& wish = lists[random() % lists.size()];
      bool free = true;
      for (const AxisRef& ref : wish) free = free && !Uses(used, ref);
      if (!free) continue;
      part.axes = wish;
      used.dims.push_back({wish});
    }
    if (AssembleDim(kMesh, rule, factors, size, parts, dim) < 0) {
      ++assembled;
      ExpectSameRows(rule, parts, size, dim);
    } else {
      ++refused;
    }
  }
  EXPECT_GT(projected, 1000);
  EXPECT_GT(assembled, 500);
  EXPECT_GT(refused, 500);
}

}  // namespace
}  // namespace partita::core
