#include "compiler/core/sharding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace partita::core {
namespace {

using ::testing::ElementsAre;

const Mesh kMesh{{{"a", 2}, {"b", 4}, {"c", 3}}, {}};
const AxisRef kA{0, 1, 2}, kB{1, 1, 4}, kC{2, 1, 3};

Sharding Dims(std::vector<DimSharding> dims) {
  Sharding sharding;
  sharding.dims = std::move(dims);
  return sharding;
}

TEST(ShardingTest, Text) {
  Sharding sharding = Dims({{{kA, {1, 1, 2}}, 0, false}, {}, {{kC}, 28, true}});
  EXPECT_EQ(ToString(kMesh, sharding), "[{a, b:(1)2}, {?}, {c, ?}|28]");
  sharding.replicated = {{1, 2, 2}};
  EXPECT_EQ(ToString(kMesh, sharding),
            "[{a, b:(1)2}, {?}, {c, ?}|28] replicated={b:(2)2}");
  Sharding scalar;
  scalar.unreduced = {kA, kC};
  EXPECT_EQ(ToString(kMesh, scalar), "[] unreduced={a, c}");
}

TEST(ShardingTest, UsesEveryList) {
  Sharding sharding = Dims({{{{1, 1, 2}}}, {}});
  EXPECT_TRUE(Uses(sharding, kB));
  EXPECT_FALSE(Uses(sharding, {1, 2, 2}));
  EXPECT_FALSE(Uses(sharding, kA));
  sharding.replicated = {kA};
  sharding.unreduced = {kC};
  EXPECT_TRUE(Uses(sharding, kA));
  EXPECT_TRUE(Uses(sharding, kC));
}

TEST(ShardingTest, ShardedMeansDividedOrPartial) {
  EXPECT_FALSE(IsSharded(Replicated(3)));
  EXPECT_TRUE(IsSharded(Dims({{}, {{kA}}})));
  Sharding partial = Replicated(1);
  partial.replicated = {kA};
  EXPECT_FALSE(IsSharded(partial));
  partial.unreduced = {kB};
  EXPECT_TRUE(IsSharded(partial));
}

TEST(ShardingTest, PlacementIgnoresOpennessAndPriority) {
  Sharding open = Dims({{{kA}, 0, true}});
  open.dims[0].SetPriority(3);
  const Sharding closed = Dims({{{kA}, 0, false}});
  EXPECT_TRUE(open.SamePlacement(closed));
  EXPECT_FALSE(open.SamePlacement(Dims({{{kA}, 5, true}})));
  EXPECT_FALSE(open.SamePlacement(Dims({{{kB}, 0, true}})));
  Sharding partial = open;
  partial.unreduced = {kC};
  EXPECT_FALSE(open.SamePlacement(partial));
}

TEST(ShardingTest, LocalShapesArePaddedBlocks) {
  const Sharding even = Dims({{{kA}}, {{kB}}, {}});
  EXPECT_THAT(LocalShape({8, 16, 5}, even), ElementsAre(4, 4, 5));
  EXPECT_FALSE(IsUneven({8, 16, 5}, even));
  EXPECT_THAT(LocalShape({7, 2, 5}, even), ElementsAre(4, 1, 5));
  EXPECT_TRUE(IsUneven({8, 18, 5}, even));
  EXPECT_THAT(LocalShape({49}, Dims({{{kA}, 28}})), ElementsAre(28));
  // No row is missing, but the blocks differ from the even share.
  EXPECT_TRUE(IsUneven({12}, Dims({{{kC}, 6}})));
}

TEST(ShardingTest, CanonicalBlocksAreZero) {
  Sharding sharding = Dims({{{kA}, 4}, {{kC}, 4}, {{}, 9}});
  CanonicalizeBlocks({7, 8, 9}, sharding);
  EXPECT_EQ(sharding.dims[0].block, 0);
  EXPECT_EQ(sharding.dims[1].block, 4);
  EXPECT_EQ(sharding.dims[2].block, 0);
}

// Shards are disjoint, ordered, and cover all rows, for any block.
TEST(ShardingTest, OwnedRowsCoverTheDimension) {
  const std::vector<std::vector<AxisRef>> lists = {
      {}, {kA}, {kC, kA}, {kB, kC}, {{1, 2, 2}, kA}};
  for (const std::vector<AxisRef>& axes : lists) {
    const int64_t shards = SizeOf(axes);
    for (int64_t size = 1; size <= 30; ++size) {
      const int64_t even = (size + shards - 1) / shards;
      for (int64_t block : {int64_t{0}, even, even + 3}) {
        const DimSharding dim{axes, block};
        for (int64_t p = 0; p < kMesh.Size(); ++p) {
          const std::vector<int64_t> group = GroupAlong(kMesh, axes, p);
          int64_t next = 0;
          for (int64_t member : group) {
            const Interval rows = OwnedRows(kMesh, size, dim, member);
            EXPECT_EQ(rows.begin, next);
            EXPECT_GE(rows.end, rows.begin);
            EXPECT_LE(rows.end - rows.begin, BlockOf(size, dim));
            next = rows.end;
          }
          EXPECT_EQ(next, size);
        }
      }
    }
  }
}

TEST(ShardingTest, OwnedRowsOfUnevenHeads) {
  // 4 heads of 8 columns over 3: 2, 2 and no head.
  const DimSharding dim{{kC}, 16};
  const int64_t begins[] = {0, 16, 32}, ends[] = {16, 32, 32};
  for (int64_t p = 0; p < 3; ++p) {
    const Interval rows = OwnedRows(kMesh, 32, dim, p);
    EXPECT_EQ(rows.begin, begins[p]);
    EXPECT_EQ(rows.end, ends[p]);
  }
}

}  // namespace
}  // namespace partita::core
