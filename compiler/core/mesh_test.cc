#include "compiler/core/mesh.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace partita::core {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Mesh SampleMesh() { return {{{"a", 2}, {"b", 8}, {"c", 3}}, {}}; }

TEST(MeshTest, SizesAndNames) {
  const Mesh mesh = SampleMesh();
  EXPECT_EQ(mesh.Size(), 48);
  EXPECT_EQ(Mesh().Size(), 1);
  EXPECT_EQ(mesh.Find("b"), 1);
  EXPECT_EQ(mesh.Find("d"), -1);
  EXPECT_EQ(SizeOf({WholeAxis(mesh, 0), WholeAxis(mesh, 2)}), 6);
  EXPECT_EQ(SizeOf({}), 1);
}

TEST(MeshTest, Text) {
  const Mesh mesh = SampleMesh();
  EXPECT_EQ(ToString(mesh, WholeAxis(mesh, 1)), "b");
  EXPECT_EQ(ToString(mesh, AxisRef{1, 2, 4}), "b:(2)4");
  EXPECT_EQ(ToString(mesh, {WholeAxis(mesh, 0), {1, 1, 2}}), "a, b:(1)2");
}

TEST(MeshTest, PartsOverlapWhereTheyShareDigits) {
  const AxisRef whole{1, 1, 8}, major{1, 1, 2}, middle{1, 2, 2}, minor{1, 4, 2};
  EXPECT_TRUE(Overlap(whole, middle));
  EXPECT_FALSE(Overlap(major, middle));
  EXPECT_FALSE(Overlap(minor, middle));
  EXPECT_TRUE(Overlap({1, 1, 4}, middle));
  // References to an axis of size 1 overlap too.
  EXPECT_TRUE(Overlap({2, 1, 1}, {2, 1, 1}));
  EXPECT_FALSE(Overlap({2, 1, 1}, {3, 1, 1}));
  EXPECT_FALSE(Overlap({0, 1, 8}, whole));
  EXPECT_TRUE(OverlapAny(minor, {major, whole}));
  EXPECT_FALSE(OverlapAny(minor, {major, middle}));
}

TEST(MeshTest, NormalizeJoinsPartsThatFollow) {
  const Mesh mesh = SampleMesh();
  EXPECT_THAT(Normalize(mesh, {{1, 1, 2}, {1, 2, 4}, {0, 1, 2}}),
              ElementsAre(WholeAxis(mesh, 1), WholeAxis(mesh, 0)));
  // In the opposite order they are another order of devices.
  EXPECT_THAT(Normalize(mesh, {{1, 2, 4}, {1, 1, 2}}),
              ElementsAre(AxisRef{1, 2, 4}, AxisRef{1, 1, 2}));
  EXPECT_THAT(Normalize(mesh, {{1, 4, 1}}), IsEmpty());
}

TEST(MeshTest, PositionsAreRowMajor) {
  const Mesh mesh = SampleMesh();
  EXPECT_THAT(Coordinates(mesh, 0), ElementsAre(0, 0, 0));
  EXPECT_THAT(Coordinates(mesh, 47), ElementsAre(1, 7, 2));
  EXPECT_THAT(Coordinates(mesh, 1 * 24 + 5 * 3 + 1), ElementsAre(1, 5, 1));
  // 5 of 8 is 101: 1 major, then 0, then 1.
  const int64_t position = 24 + 5 * 3 + 1;
  EXPECT_EQ(IndexAlong(mesh, {{1, 1, 2}}, position), 1);
  EXPECT_EQ(IndexAlong(mesh, {{1, 2, 2}}, position), 0);
  EXPECT_EQ(IndexAlong(mesh, {{1, 4, 2}}, position), 1);
  EXPECT_EQ(IndexAlong(mesh, {{1, 2, 4}}, position), 1);
  EXPECT_EQ(IndexAlong(mesh, {{2, 1, 3}, {0, 1, 2}}, position), 1 * 2 + 1);
}

TEST(MeshTest, GroupsPartitionTheMesh) {
  const Mesh mesh = SampleMesh();
  const std::vector<std::vector<AxisRef>> lists = {
      {},
      {WholeAxis(mesh, 0)},
      {WholeAxis(mesh, 2), WholeAxis(mesh, 0)},
      {{1, 2, 2}},
      {{1, 4, 2}, {1, 1, 2}},
      {WholeAxis(mesh, 1), {0, 1, 2}, {2, 1, 3}}};
  for (const std::vector<AxisRef>& axes : lists) {
    for (int64_t position = 0; position < mesh.Size(); ++position) {
      const std::vector<int64_t> group = GroupAlong(mesh, axes, position);
      ASSERT_EQ(static_cast<int64_t>(group.size()), SizeOf(axes));
      EXPECT_EQ(std::set<int64_t>(group.begin(), group.end()).size(),
                group.size());
      EXPECT_EQ(group[IndexAlong(mesh, axes, position)], position);
      for (size_t i = 0; i < group.size(); ++i) {
        EXPECT_EQ(IndexAlong(mesh, axes, group[i]), static_cast<int64_t>(i));
        EXPECT_EQ(GroupAlong(mesh, axes, group[i]), group);
      }
    }
  }
}

TEST(MeshTest, GroupsOfTwoByTwo) {  // F3: along axis 0 or 1 of 2 x 2
  const Mesh mesh{{{"x", 2}, {"y", 2}}, {}};
  EXPECT_THAT(GroupAlong(mesh, {WholeAxis(mesh, 0)}, 0), ElementsAre(0, 2));
  EXPECT_THAT(GroupAlong(mesh, {WholeAxis(mesh, 0)}, 3), ElementsAre(1, 3));
  EXPECT_THAT(GroupAlong(mesh, {WholeAxis(mesh, 1)}, 0), ElementsAre(0, 1));
  EXPECT_THAT(GroupAlong(mesh, {WholeAxis(mesh, 1)}, 3), ElementsAre(2, 3));
}

}  // namespace
}  // namespace partita::core
