// Axes from groups and pairs of devices, as XLA's collectives have them.
#include "dialects/dist/dialect.h"
#include "frontends/stablehlo/manual/axes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mlir/IR/Builders.h"

namespace partita::stablehlo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ManualAxesTest : public testing::Test {
 protected:
  ManualAxesTest() { context_.loadDialect<dist::DistDialect>(); }

  // A mesh x=2, y=3, one=1, z=2 with manual axes x and y.
  ManualAxes make(llvm::ArrayRef<int64_t> devices = {}) {
    llvm::SmallVector<dist::MeshAxisAttr> axes;
    for (auto [name, size] : {std::pair("x", 2), std::pair("y", 3),
                              std::pair("one", 1), std::pair("z", 2)})
      axes.push_back(dist::MeshAxisAttr::get(&context_, name, size));
    llvm::StringSet<> names;
    for (const char* name : {"x", "y", "one"}) names.insert(name);
    return ManualAxes(dist::MeshAttr::get(&context_, axes),
                      devices.empty()
                          ? nullptr
                          : mlir::DenseI64ArrayAttr::get(&context_, devices),
                      names);
  }

  // Device of coordinates x, y, z.
  static int64_t at(int64_t x, int64_t y, int64_t z) {
    return (x * 3 + y) * 2 + z;
  }

  mlir::MLIRContext context_;
  builder::Shape axes_, sources_;
};

TEST_F(ManualAxesTest, LeavesOutAxesOfOneDevice) {
  const ManualAxes axes = make();
  EXPECT_EQ(axes.all().size(), 2u);
  EXPECT_EQ(axes.find("y"), 1);
  EXPECT_EQ(axes.find("z"), -1);
  EXPECT_EQ(axes.find("one"), -1);
}

TEST_F(ManualAxesTest, FindsAxesOfGroupsInOrder) {
  builder::Shape along_y, both;
  for (int64_t x : {0, 1})
    for (int64_t z : {0, 1})
      for (int64_t y : {0, 1, 2}) along_y.push_back(at(x, y, z));
  EXPECT_EQ(make().axesOfGroups(along_y, 3, axes_), "");
  EXPECT_THAT(axes_, ElementsAre(1));
  // y is the slower one.
  for (int64_t z : {0, 1})
    for (int64_t y : {0, 1, 2})
      for (int64_t x : {0, 1}) both.push_back(at(x, y, z));
  EXPECT_EQ(make().axesOfGroups(both, 6, axes_), "");
  EXPECT_THAT(axes_, ElementsAre(1, 0));
  EXPECT_EQ(make().axesOfGroups(builder::countUp(12), 1, axes_), "");
  EXPECT_THAT(axes_, IsEmpty());
}

TEST_F(ManualAxesTest, RefusesOtherGroups) {
  const std::string whole = "expected groups of all devices along whole axes";
  // Along z, which is not manual.
  EXPECT_THAT(make().axesOfGroups(builder::countUp(12), 2, axes_),
              HasSubstr(whole));
  // A part of y; a device twice; a device beyond the mesh.
  EXPECT_THAT(
      make().axesOfGroups({0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11}, 2, axes_),
      HasSubstr(whole));
  EXPECT_THAT(
      make().axesOfGroups({0, 6, 0, 6, 1, 7, 2, 8, 3, 9, 4, 10}, 2, axes_),
      HasSubstr(whole));
  EXPECT_THAT(
      make().axesOfGroups({0, 6, 1, 7, 2, 8, 3, 9, 4, 10, 5, 99}, 2, axes_),
      HasSubstr(whole));
  EXPECT_THAT(make().axesOfGroups({0, 6}, 2, axes_), HasSubstr(whole));
  EXPECT_THAT(make().axesOfGroups({}, 0, axes_), HasSubstr(whole));
}

TEST_F(ManualAxesTest, FindsAxesOfPairs) {
  builder::Shape ring, ends;
  for (int64_t x : {0, 1})
    for (int64_t z : {0, 1})
      for (int64_t y : {0, 1, 2}) {
        ring.append({at(x, y, z), at(x, (y + 1) % 3, z)});
        if (y < 2) ends.append({at(x, y, z), at(x, y + 1, z)});
      }
  EXPECT_EQ(make().axesOfPairs(ring, axes_, sources_), "");
  EXPECT_THAT(axes_, ElementsAre(1));
  EXPECT_THAT(sources_, ElementsAre(2, 0, 1));
  EXPECT_EQ(make().axesOfPairs(ends, axes_, sources_), "");
  EXPECT_THAT(sources_, ElementsAre(-1, 0, 1));
  // Only some devices along x.
  EXPECT_THAT(make().axesOfPairs({at(0, 0, 0), at(0, 1, 0)}, axes_, sources_),
              HasSubstr("expected the same pairs for all devices"));
  EXPECT_THAT(make().axesOfPairs({0, 1}, axes_, sources_),
              HasSubstr("along axes of the manual computation"));
  EXPECT_THAT(make().axesOfPairs({0, -5}, axes_, sources_),
              HasSubstr("expected pairs of devices of the mesh"));
  EXPECT_EQ(make().axesOfPairs({}, axes_, sources_), "");
  EXPECT_THAT(sources_, ElementsAre(-1));
}

TEST_F(ManualAxesTest, NumbersDevicesInTheMeshsOrder) {
  EXPECT_THAT(make().deviceNumbers(), ElementsAre(0, 2, 4, 6, 8, 10));
  const ManualAxes reversed = make({11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0});
  EXPECT_THAT(reversed.deviceNumbers(), ElementsAre(11, 9, 7, 5, 3, 1));
  EXPECT_EQ(
      reversed.axesOfGroups({11, 5, 10, 4, 9, 3, 8, 2, 7, 1, 6, 0}, 2, axes_),
      "");
  EXPECT_THAT(axes_, ElementsAre(0));
}

}  // namespace
}  // namespace partita::stablehlo
