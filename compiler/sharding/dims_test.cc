#include "compiler/sharding/dims.h"

#include <gtest/gtest.h>

namespace partita::sharding {
namespace {

TEST(DimsTest, NamesAndSizes) {
  const std::optional<Dim> heads = parseDim("N*8", 32);
  ASSERT_TRUE(heads);
  ASSERT_EQ(heads->segments.size(), 2u);
  EXPECT_EQ(heads->segments[0].name, "N");
  EXPECT_EQ(heads->segments[0].size, 4);
  EXPECT_EQ(heads->segments[1].name, "");
  EXPECT_EQ(heads->segments[1].size, 8);
  EXPECT_TRUE(heads->isNamed("N"));
  EXPECT_FALSE(heads->isNamed("E"));
}

TEST(DimsTest, OnlyTheFirstSegmentIsDivided) {
  EXPECT_FALSE(parseDim("3*N*8", 96)->isNamed("N"));
  EXPECT_FALSE(parseDim("E'", 32)->isNamed("E"));
  EXPECT_FALSE(parseDim("1", 1)->isNamed("B"));
}

TEST(DimsTest, RolesNameTheWhole) {
  const std::optional<Dim> pixels = parseDim("L=H*W", 49);
  ASSERT_TRUE(pixels);
  EXPECT_TRUE(pixels->isNamed("L"));
  EXPECT_TRUE(pixels->isNamed("H"));
  EXPECT_FALSE(pixels->isNamed("W"));
  EXPECT_EQ(pixels->segments[0].size, 0);  // 49 may be 7 * 7 or 49 * 1
}

TEST(DimsTest, PrintsWhatItReads) {
  for (const char* text : {"E", "N*8", "L=H*W", "L'=H'*W'", "3", "1", "2*L*4"})
    EXPECT_EQ(print(*parseDim(text, text[0] == '3'   ? 3
                                    : text[0] == '1' ? 1
                                                     : 96)),
              text);
}

TEST(DimsTest, RefusesWhatIsNoDimension) {
  EXPECT_FALSE(parseDim("", 4));
  EXPECT_FALSE(parseDim("N*", 4));
  EXPECT_FALSE(parseDim("N*3", 4));
  EXPECT_FALSE(parseDim("3", 4));
  EXPECT_FALSE(parseDim("-2*N", 4));
  EXPECT_FALSE(parseDim("=N", 4));
  EXPECT_FALSE(parseDim("3=N", 4));
}

}  // namespace
}  // namespace partita::sharding
