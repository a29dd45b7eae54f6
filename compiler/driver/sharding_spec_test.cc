// Shardings in ONNX's form, read back by the importer's own functions.
#include "compiler/driver/sharding_spec.h"

#include <random>

#include "frontends/onnx/device_grid.h"
#include "frontends/onnx/placement.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace partita::driver {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

core::Mesh MakeMesh(std::vector<int64_t> sizes) {
  core::Mesh mesh;
  for (size_t i = 0; i < sizes.size(); ++i)
    mesh.axes.push_back({std::string(1, static_cast<char>('a' + i)), sizes[i]});
  return mesh;
}

core::Sharding Divided(const core::Mesh& mesh,
                       const std::vector<std::vector<int>>& axes) {
  core::Sharding sharding = core::Replicated(static_cast<int>(axes.size()));
  for (size_t d = 0; d < axes.size(); ++d)
    for (int axis : axes[d])
      sharding.dims[d].axes.push_back(core::WholeAxis(mesh, axis));
  return sharding;
}

TEST(ShardingSpec, NamesGroupsFromMinusOne) {
  const core::Mesh mesh = MakeMesh({2, 2});
  auto spec = specOf(mesh, {4, 6}, Divided(mesh, {{}, {1}}));
  ASSERT_TRUE(spec);
  EXPECT_THAT(spec->devices, ElementsAre(-1, -2));
  EXPECT_THAT(spec->groups, ElementsAre(Pair(-1, ElementsAre(0, 2)),
                                        Pair(-2, ElementsAre(1, 3))));
  ASSERT_EQ(spec->dims.size(), 1u);
  EXPECT_EQ(spec->dims[0].axis, 1);
  EXPECT_EQ(spec->dims[0].factors[0].shards, 2);
}

TEST(ShardingSpec, WholeTensorsAreOneGroup) {
  const core::Mesh mesh = MakeMesh({4});
  auto spec = specOf(mesh, {6}, core::Replicated(1));
  ASSERT_TRUE(spec);
  EXPECT_THAT(spec->devices, ElementsAre(-1));
  EXPECT_THAT(spec->groups, ElementsAre(Pair(-1, ElementsAre(0, 1, 2, 3))));
  EXPECT_THAT(spec->dims, IsEmpty());
}

TEST(ShardingSpec, NumbersOfDevicesAreTheMeshs) {
  core::Mesh mesh = MakeMesh({4});
  mesh.device_ids = {2, 3, 0, 1};
  auto spec = specOf(mesh, {8}, Divided(mesh, {{0}}));
  ASSERT_TRUE(spec);
  EXPECT_THAT(spec->devices, ElementsAre(2, 3, 0, 1));
  EXPECT_THAT(spec->groups, IsEmpty());
}

// Heads stay whole: 3 heads of 8 rows over 2 devices are 16 and 8 rows, so the
// factor of 3 is divided.
TEST(ShardingSpec, BlocksAreFactors) {
  const core::Mesh mesh = MakeMesh({2});
  core::Sharding sharding = Divided(mesh, {{0}});
  sharding.dims[0].block = 16;
  auto spec = specOf(mesh, {24}, sharding);
  ASSERT_TRUE(spec);
  ASSERT_EQ(spec->dims[0].factors.size(), 2u);
  EXPECT_EQ(spec->dims[0].factors[0].size * spec->dims[0].factors[1].size, 24);
  EXPECT_EQ(
      (spec->dims[0].factors[0].size + 1) / 2 * spec->dims[0].factors[1].size,
      16);
  sharding.dims[0].block = 17;  // fits no factor
  EXPECT_FALSE(specOf(mesh, {24}, sharding));
}

TEST(ShardingSpec, HasNoWordsForPartialSums) {
  const core::Mesh mesh = MakeMesh({2});
  core::Sharding sharding = core::Replicated(1);
  sharding.unreduced = {core::WholeAxis(mesh, 0)};
  EXPECT_FALSE(specOf(mesh, {4}, sharding));
}

// Each device reads back the shard that the mesh gives it, whatever the
// division.
TEST(ShardingSpec, RandomShardingsAreReadBack) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    const core::Mesh mesh = MakeMesh({2, 3, 2});
    std::vector<int> axes = {0, 1, 2};
    std::shuffle(axes.begin(), axes.end(), random);
    std::vector<std::vector<int>> dims(3);
    for (int axis : axes)
      if (random() % 3 != 0) dims[random() % 3].push_back(axis);
    auto spec = specOf(mesh, {12, 13, 5}, Divided(mesh, dims));
    ASSERT_TRUE(spec);
    onnx::Placement placement;
    std::string error;
    ASSERT_TRUE(onnx::placementOf(*spec, 12, placement, error)) << error;
    onnx::Grid grid;
    size_t culprit = 0;
    ASSERT_TRUE(onnx::findGrid(12, {placement}, grid, culprit));
    // The grid may join axes, but each device must hold the same shard.
    core::Mesh found = MakeMesh(grid.sizes);
    found.device_ids = grid.device_ids;
    ASSERT_THAT(found.device_ids, IsEmpty());
    for (int64_t position = 0; position < 12; ++position) {
      size_t next = 0;
      for (const std::vector<int>& dim : dims) {
        if (dim.empty()) continue;
        std::vector<core::AxisRef> expected, read;
        for (int axis : dim) expected.push_back(core::WholeAxis(mesh, axis));
        for (int axis : grid.axes[0][next++])
          read.push_back(core::WholeAxis(found, axis));
        ASSERT_EQ(core::IndexAlong(found, read, position),
                  core::IndexAlong(mesh, expected, position));
      }
    }
  }
}

}  // namespace
}  // namespace partita::driver
