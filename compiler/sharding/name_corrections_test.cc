#include "compiler/sharding/name_corrections.h"

#include <gtest/gtest.h>

namespace partita::sharding {
namespace {

TEST(GlobTest, StarsAndQuestionMarks) {
  EXPECT_TRUE(matchesGlob("h.*.mlp.up", "h.10.mlp.up"));
  EXPECT_TRUE(matchesGlob("*.up", "h.0.up.up"));
  EXPECT_TRUE(matchesGlob("h.?.up", "h.1.up"));
  EXPECT_TRUE(matchesGlob("*", ""));
  EXPECT_TRUE(matchesGlob("", ""));
  EXPECT_TRUE(matchesGlob("a**b", "ab"));
}

TEST(GlobTest, AllOfTheText) {
  EXPECT_FALSE(matchesGlob("h.*.up", "h.0.upper"));
  EXPECT_FALSE(matchesGlob("h.?.up", "h.10.up"));
  EXPECT_FALSE(matchesGlob("up", "h.0.up"));
  EXPECT_FALSE(matchesGlob("", "x"));
}

TEST(GlobTest, ManyStarsTakeNoLongTime) {
  const std::string text(2000, 'a');
  EXPECT_FALSE(matchesGlob("a*a*a*a*a*a*a*a*a*b", text));
}

}  // namespace
}  // namespace partita::sharding
