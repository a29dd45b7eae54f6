// Known sequences of collectives.
#include "compiler/core/reshard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/core/test_shardings.h"

namespace partita::core {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Formats the steps with their bytes.
std::vector<std::string> Steps(const std::string& mesh_text,
                               const std::vector<int64_t>& shape,
                               const std::string& from, const std::string& to) {
  const Mesh mesh = MeshOf(mesh_text);
  const ReshardPlan plan =
      PlanReshard(mesh, shape, 4, ShardingOf(mesh, from), ShardingOf(mesh, to));
  std::vector<std::string> steps;
  for (const Collective& step : plan.steps)
    steps.push_back(Text(mesh, step) + ": " + std::to_string(step.bytes));
  return steps;
}

// Case B1.
TEST(PlanReshard, GathersMinorAxesAtOnce) {
  EXPECT_THAT(Steps("x=2 y=2 z=2", {16, 2}, "x,y,z -", "x -"),
              ElementsAre("all_gather {y, z} dim 0 -> [{x}, {}]: 48"));
}

// B2.
TEST(PlanReshard, GathersASubAxis) {
  EXPECT_THAT(Steps("x=2 y=8", {16, 4}, "y x", "y:(1)4 x"),
              ElementsAre("all_gather {y:(4)2} dim 0 -> [{y:(1)4}, {x}]: 16"));
}

// B3.
TEST(PlanReshard, SlicesWithoutTraffic) {
  EXPECT_THAT(Steps("x=2 y=2 z=2", {8, 8}, "- -", "x y,z"),
              ElementsAre("all_slice {x} dim 0 -> [{x}, {}]: 0",
                          "all_slice {y, z} dim 1 -> [{x}, {y, z}]: 0"));
}

// B4.
TEST(PlanReshard, MovesAnAxisByAllToAll) {
  EXPECT_THAT(
      Steps("x=2 y=2", {16, 8, 8}, "x y -", "- y x"),
      ElementsAre("all_to_all {x} dim 2 from 0 -> [{}, {y}, {x}]: 512"));
}

// B7: another order of the same devices.
TEST(PlanReshard, PermutesDevices) {
  EXPECT_THAT(Steps("x=2 y=2", {8, 8}, "x,y -", "y,x -"),
              ElementsAre("permute {x, y} -> [{y, x}, {}]: 64"));
  EXPECT_THAT(Steps("x=2 y=2", {8, 8}, "x -", "y -"),
              ElementsAre("permute {x, y} -> [{y}, {}]: 128"));
  EXPECT_THAT(Steps("x=2 y=2", {8, 8}, "x y", "y x"),
              ElementsAre("permute {x, y} -> [{y}, {x}]: 64"));
}

// B8: one reduce-scatter, where Shardy uses an all-reduce and a slice.
TEST(PlanReshard, ScattersWhatItReduces) {
  EXPECT_THAT(Steps("x=4 y=2", {8, 16}, "x - +y", "x y"),
              ElementsAre("reduce_scatter {y} dim 1 -> [{x}, {y}]: 64"));
}

// B11: one axis is reduced, the other stays.
TEST(PlanReshard, KeepsWhatStaysUnreduced) {
  EXPECT_THAT(Steps("x=2 y=2", {4}, "- +x,y", "- +x"),
              ElementsAre("all_reduce {y} -> [{}] unreduced={x}: 16"));
}

// B12.
TEST(PlanReshard, OneDimensionOfAGrid) {
  EXPECT_THAT(Steps("x=2", {10, 14}, "x -", "- x"),
              ElementsAre("all_to_all {x} dim 1 from 0 -> [{}, {x}]: 140"));
  EXPECT_THAT(Steps("x=2", {3, 14}, "- -", "- x"),
              ElementsAre("all_slice {x} dim 1 -> [{}, {x}]: 0"));
  EXPECT_THAT(Steps("x=2", {10, 14}, "x -", "- -"),
              ElementsAre("all_gather {x} dim 0 -> [{}, {}]: 280"));
}

// openxla/xla#15207, jax-ml/jax#21562: XLA gathers everything here.
TEST(PlanReshard, TwoAllToAllsInsteadOfAFullGather) {
  EXPECT_THAT(
      Steps("x=4 y=2", {16, 16, 16}, "y - x", "- x,y -"),
      ElementsAre("all_to_all {x} dim 1 from 2 -> [{y}, {x}, {}]: 1536",
                  "all_to_all {y} dim 1 from 0 -> [{}, {x, y}, {}]: 1024"));
}

TEST(PlanReshard, SwapsUnequalAxesWithoutAFullGather) {
  const Mesh mesh = MeshOf("x=4 y=2");
  const ReshardPlan plan = PlanReshard(
      mesh, {4096, 4096}, 4, ShardingOf(mesh, "x y"), ShardingOf(mesh, "y x"));
  int64_t bytes = 0;
  for (const Collective& step : plan.steps) {
    EXPECT_NE(step.kind, CollectiveKind::kAllGather);
    bytes += step.bytes;
  }
  EXPECT_LE(bytes, int64_t{4096} * 4096 * 4 * 9 / 32);
}

TEST(PlanReshard, NothingToDo) {
  EXPECT_THAT(Steps("x=4", {8, 8}, "x -", "x -"), IsEmpty());
  EXPECT_THAT(Steps("x=4", {8, 8}, "x:(1)2,x:(2)2 -", "x|2 -"), IsEmpty());
  EXPECT_THAT(Steps("x=1", {8, 8}, "x -", "- -"), IsEmpty());
}

TEST(PlanReshard, UnevenBlocks) {
  EXPECT_THAT(Steps("x=2", {7, 4}, "x -", "- x"),
              ElementsAre("all_to_all {x} dim 1 from 0 -> [{}, {x}]: 32"));
  // 28 + 21 to 25 + 24: three rows move.
  EXPECT_THAT(Steps("x=2", {49}, "x|28", "x"),
              ElementsAre("exchange {x} dim 0 -> [{x}]: 12"));
  // 4 + 3 over x, then 2 + 2 + 2 + 1.
  EXPECT_THAT(Steps("x=2 y=2", {7}, "x", "x,y"),
              ElementsAre("all_slice {y} dim 0 -> [{x, y}]: 0"));
}

TEST(PlanReshard, BlocksThatDoNotNestAreRealignedFirst) {
  // 7 over 2 is 4 + 3; over 2 x 3 it is 2 + 2 + 2 + 1, that is 6 + 1.
  const Mesh mesh = MeshOf("x=2 y=3");
  const ReshardPlan plan = PlanReshard(
      mesh, {7, 100}, 4, ShardingOf(mesh, "x -"), ShardingOf(mesh, "x,y -"));
  ASSERT_EQ(plan.steps.size(), 2u);
  EXPECT_EQ(Text(mesh, plan.steps[0]), "exchange {x} dim 0 -> [{x}|6, {}]");
  EXPECT_EQ(plan.steps[0].bytes, 2 * 100 * 4);
  EXPECT_EQ(Text(mesh, plan.steps[1]), "all_slice {y} dim 0 -> [{x, y}, {}]");
}

// H of 2 rows over 8 devices. Gathering over c and a gives 4 rows, of which 2
// are padding. They differ from the 2 blocks of 1 row that a slice by a would
// need.
TEST(PlanReshard, NoSliceDropsPadding) {
  EXPECT_THAT(
      Steps("b=2 c=2 a=2", {3, 32, 2, 2}, "- - b,c,a -", "- - b,a c"),
      ElementsAre("all_to_all {a} dim 3 from 2 -> [{}, {}, {b, c}|2, {a}]: 384",
                  "exchange {b, c} dim 2 -> [{}, {}, {b, c}, {a}]: 384",
                  "permute {c, a} -> [{}, {}, {b, a}, {c}]: 384"));
}

TEST(PlanReshard, PartsThatDoNotNestAreGatheredWhole) {
  EXPECT_THAT(Steps("x=6", {12, 12}, "x:(1)2 -", "x:(1)3 -"),
              ElementsAre("all_gather {x:(1)2} dim 0 -> [{}, {}]: 288",
                          "all_slice {x:(1)3} dim 0 -> [{x:(1)3}, {}]: 0"));
}

TEST(PlanReshard, ReductionIsThatOfTheCaller) {
  const Mesh mesh = MeshOf("x=2");
  const ReshardPlan plan = PlanReshard(mesh, {8}, 4, ShardingOf(mesh, "- +x"),
                                       ShardingOf(mesh, "-"), Reduction::kMax);
  ASSERT_EQ(plan.steps.size(), 1u);
  EXPECT_EQ(plan.steps[0].reduction, Reduction::kMax);
}

TEST(PlanReshard, TheResultIsWrittenAsTheTarget) {
  const Mesh mesh = MeshOf("x=2 y=2");
  Sharding to = ShardingOf(mesh, "x,y -");
  to.dims[1].open = true;
  to.dims[0].SetPriority(3);
  to.replicated.clear();
  const ReshardPlan plan =
      PlanReshard(mesh, {8, 8}, 4, ShardingOf(mesh, "- -"), to);
  ASSERT_EQ(plan.steps.size(), 1u);
  EXPECT_TRUE(plan.steps[0].result.SamePlacement(to));
  EXPECT_TRUE(plan.steps[0].result.dims[1].open);
  EXPECT_EQ(plan.steps[0].result.dims[0].axes[0].priority, 3);
}

TEST(PlanReshard, ManyAxesTakeTheLongWayAtWorst) {
  const Mesh mesh = MeshOf("a=2 b=3 c=2 d=3 e=2 f=3 g=2 h=3");
  const ReshardPlan plan = PlanReshard(mesh, {64, 81, 64, 81}, 4,
                                       ShardingOf(mesh, "a,b c,d e,f g,h"),
                                       ShardingOf(mesh, "h,g f,e d,c b,a"));
  ASSERT_FALSE(plan.steps.empty());
  EXPECT_TRUE(plan.steps.back().result.SamePlacement(
      ShardingOf(mesh, "h,g f,e d,c b,a")));
}

}  // namespace
}  // namespace partita::core
