// Tests of finding the mesh behind device lists, and of lists without a mesh.
#include "frontends/onnx/device_grid.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace partita::onnx {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Placement single(std::vector<int64_t> counts, std::vector<int64_t> devices) {
  Placement placement;
  placement.counts = std::move(counts);
  for (int64_t device : devices) placement.holders.push_back({device});
  return placement;
}

TEST(DeviceGrid, IsFlatWhereNothingIsDivided) {
  Grid grid;
  size_t culprit;
  ASSERT_TRUE(findGrid(12, {}, grid, culprit));
  EXPECT_THAT(grid.sizes, ElementsAre(12));
  ASSERT_TRUE(findGrid(1, {}, grid, culprit));
  EXPECT_THAT(grid.sizes, ElementsAre(1));
}

TEST(DeviceGrid, IsCoarse) {
  Grid grid;
  size_t culprit;
  ASSERT_TRUE(
      findGrid(8, {single({8}, {0, 1, 2, 3, 4, 5, 6, 7})}, grid, culprit));
  EXPECT_THAT(grid.sizes, ElementsAre(8));
  EXPECT_THAT(grid.axes[0][0], ElementsAre(0));
}

// X, W and Y of a MatMul on 2 x 2 devices.
TEST(DeviceGrid, FindsTheGridOfAMatMul) {
  Grid grid;
  size_t culprit;
  const Placement x{{2}, {{0, 1}, {2, 3}}};
  const Placement w{{2}, {{0, 2}, {1, 3}}};
  ASSERT_TRUE(findGrid(4, {x, w, single({2, 2}, {0, 1, 2, 3})}, grid, culprit));
  EXPECT_THAT(grid.sizes, ElementsAre(2, 2));
  EXPECT_THAT(grid.device_ids, IsEmpty());
  EXPECT_THAT(grid.axes[0], ElementsAre(ElementsAre(0)));
  EXPECT_THAT(grid.axes[1], ElementsAre(ElementsAre(1)));
  EXPECT_THAT(grid.axes[2], ElementsAre(ElementsAre(0), ElementsAre(1)));
}

// Six devices are 3 x 2 or 2 x 3; the placements decide.
TEST(DeviceGrid, FindsTheOrderOfFactors) {
  Grid grid;
  size_t culprit;
  const Placement rows{{3}, {{0, 1}, {2, 3}, {4, 5}}};
  ASSERT_TRUE(findGrid(6, {rows}, grid, culprit));
  EXPECT_THAT(grid.sizes, ElementsAre(3, 2));
  const Placement halves{{2}, {{0, 1, 2}, {3, 4, 5}}};
  ASSERT_TRUE(findGrid(6, {halves}, grid, culprit));
  EXPECT_THAT(grid.sizes, ElementsAre(2, 3));
  EXPECT_FALSE(findGrid(6, {rows, halves}, grid, culprit));
  EXPECT_EQ(culprit, 1u);
}

// A dimension divided by the fast axis first: shard 1 is on device 2.
TEST(DeviceGrid, KnowsTheMinorAxisAsTheMoreSignificant) {
  Grid grid;
  size_t culprit;
  ASSERT_TRUE(findGrid(4, {single({4}, {0, 2, 1, 3})}, grid, culprit));
  EXPECT_THAT(grid.sizes, ElementsAre(2, 2));
  EXPECT_THAT(grid.axes[0][0], ElementsAre(1, 0));
}

TEST(DeviceGrid, TakesDevicesInAnotherOrder) {
  Grid grid;
  size_t culprit;
  const Placement pairs{{2}, {{3, 0}, {1, 2}}};
  ASSERT_TRUE(findGrid(4, {pairs, single({4}, {3, 0, 1, 2})}, grid, culprit));
  EXPECT_THAT(grid.sizes, ElementsAre(2, 2));
  EXPECT_THAT(grid.device_ids, ElementsAre(3, 0, 1, 2));
  EXPECT_THAT(grid.axes[0][0], ElementsAre(0));
  EXPECT_THAT(grid.axes[1][0], ElementsAre(0, 1));
}

TEST(DeviceGrid, RefusesGroupsOfUnequalSize) {
  Grid grid;
  size_t culprit;
  EXPECT_FALSE(findGrid(4, {{{2}, {{0}, {1, 2, 3}}}}, grid, culprit));
  EXPECT_EQ(culprit, 0u);
}

}  // namespace
}  // namespace partita::onnx
