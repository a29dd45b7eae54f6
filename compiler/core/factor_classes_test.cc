#include "compiler/core/factor_classes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace partita::core {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<int64_t> Sizes(const FactorClasses& classes, int dim) {
  std::vector<int64_t> sizes;
  for (int segment : classes.Segments(dim))
    sizes.push_back(classes.SegmentSize(segment));
  return sizes;
}

TEST(FactorClassesTest, NewDimensionsStandApart) {
  FactorClasses classes;
  const int a = classes.AddDim(4), b = classes.AddDim(4);
  EXPECT_THAT(Sizes(classes, a), ElementsAre(4));
  EXPECT_NE(classes.Segments(a), classes.Segments(b));
}

TEST(FactorClassesTest, SizeOneHasNoSegments) {
  FactorClasses classes;
  const int one = classes.AddDim(1), other = classes.AddDim(1);
  EXPECT_THAT(classes.Segments(one), IsEmpty());
  EXPECT_TRUE(classes.Unify({one}, {other}));
  EXPECT_TRUE(classes.Unify({one}, {}));
}

TEST(FactorClassesTest, UnifyIsTransitive) {
  FactorClasses classes;
  const int a = classes.AddDim(4), b = classes.AddDim(4), c = classes.AddDim(4),
            d = classes.AddDim(4);
  EXPECT_TRUE(classes.Unify({a}, {b}));
  EXPECT_TRUE(classes.Unify({c}, {d}));
  EXPECT_TRUE(classes.Unify({b}, {c}));
  EXPECT_EQ(classes.Segments(a), classes.Segments(d));
}

TEST(FactorClassesTest, AMergeSplitsTheWholeClass) {
  FactorClasses classes;
  const int width = classes.AddDim(32), projected = classes.AddDim(32);
  const int heads = classes.AddDim(4), head = classes.AddDim(8);
  EXPECT_TRUE(classes.Unify({width}, {projected}));
  EXPECT_TRUE(classes.Unify({heads, head}, {projected}));
  EXPECT_THAT(Sizes(classes, width), ElementsAre(4, 8));
  EXPECT_EQ(classes.Segments(width)[0], classes.Segments(heads)[0]);
  EXPECT_EQ(classes.Segments(width)[1], classes.Segments(head)[0]);
}

TEST(FactorClassesTest, FinerAndCoarserMeet) {
  FactorClasses classes;
  const int a = classes.AddDim(24), b = classes.AddDim(24);
  const int two = classes.AddDim(2), twelve = classes.AddDim(12);
  const int six = classes.AddDim(6), four = classes.AddDim(4);
  EXPECT_TRUE(classes.Unify({a}, {two, twelve}));
  EXPECT_TRUE(classes.Unify({b}, {six, four}));
  EXPECT_TRUE(classes.Unify({a}, {b}));
  EXPECT_THAT(Sizes(classes, a), ElementsAre(2, 3, 4));
  EXPECT_EQ(classes.Segments(a), classes.Segments(b));
  EXPECT_THAT(Sizes(classes, twelve), ElementsAre(3, 4));
}

TEST(FactorClassesTest, AClassThatMeetsItsOwnPartSplitsOnce) {
  FactorClasses classes;
  const int a = classes.AddDim(16), b = classes.AddDim(16);
  const int major = classes.AddDim(4), minor = classes.AddDim(4);
  EXPECT_TRUE(classes.Unify({a}, {major, minor}));
  EXPECT_TRUE(classes.Unify({b}, {minor, major}));
  EXPECT_TRUE(classes.Unify({a}, {b}));
  EXPECT_EQ(classes.Segments(a)[0], classes.Segments(a)[1]);
}

TEST(FactorClassesTest, SizesThatDoNotDivideStayApart) {
  FactorClasses classes;
  const int a = classes.AddDim(2), b = classes.AddDim(4), c = classes.AddDim(6),
            d = classes.AddDim(2), e = classes.AddDim(24);
  EXPECT_TRUE(classes.Unify({a, b}, {d, b}));
  EXPECT_TRUE(classes.Unify({e}, {b, c}));
  const int f = classes.AddDim(48), g = classes.AddDim(6);
  EXPECT_TRUE(classes.Unify({f}, {a, g, b}));
  // 2 | 4 | 6 against 2 | 6 | 4: only the first segment is common.
  EXPECT_FALSE(classes.Unify({d, e}, {f}));
  EXPECT_EQ(classes.Segments(d), classes.Segments(a));
  EXPECT_NE(classes.Segments(c), classes.Segments(g));
}

TEST(FactorClassesTest, LinksJoinSegmentsOneByOne) {
  FactorClasses classes;
  const int before = classes.AddDim(56), after = classes.AddDim(28);
  const int rows = classes.AddDim(7), columns = classes.AddDim(8);
  classes.Link(before, after);
  ASSERT_EQ(classes.LinkedSegments().size(), 1u);
  EXPECT_EQ(
      classes.LinkedSegments()[0],
      std::make_pair(classes.Segments(before)[0], classes.Segments(after)[0]));
  EXPECT_TRUE(classes.Unify({before}, {rows, columns}));
  EXPECT_THAT(classes.LinkedSegments(), IsEmpty());
}

}  // namespace
}  // namespace partita::core
