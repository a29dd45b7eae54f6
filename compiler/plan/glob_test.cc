// Tests of patterns for names.
#include "compiler/plan/glob.h"

#include <gtest/gtest.h>

namespace partita::plan {
namespace {

TEST(MatchesGlob, Stars) {
  EXPECT_TRUE(MatchesGlob("h.*.mlp.up.weight", "h.11.mlp.up.weight"));
  EXPECT_FALSE(MatchesGlob("h.*.mlp.up.weight", "h.11.mlp.up.bias"));
  EXPECT_TRUE(MatchesGlob("*", ""));
  EXPECT_TRUE(MatchesGlob("a*b*c", "a.b.b.c"));
  EXPECT_FALSE(MatchesGlob("a*b*c", "a.b.b"));
  EXPECT_TRUE(MatchesGlob("h.?", "h.7"));
  EXPECT_FALSE(MatchesGlob("h.?", "h.17"));
  EXPECT_FALSE(MatchesGlob("h", "h.7"));
}

TEST(MatchesGlob, Alternatives) {
  EXPECT_TRUE(MatchesGlob("stages.{0,1}.*", "stages.1.conv"));
  EXPECT_FALSE(MatchesGlob("stages.{0,1}.*", "stages.2.conv"));
  EXPECT_TRUE(MatchesGlob("{a,b{c,d}}{,e}", "bde"));
  EXPECT_TRUE(MatchesGlob("{a,b{c,d}}{,e}", "a"));
  EXPECT_FALSE(MatchesGlob("{a,b{c,d}}{,e}", "b"));
}

TEST(MatchesGlob, Sets) {
  EXPECT_TRUE(MatchesGlob("h.[0-3]", "h.2"));
  EXPECT_FALSE(MatchesGlob("h.[0-3]", "h.4"));
  EXPECT_TRUE(MatchesGlob("h.[!0-3]", "h.4"));
  EXPECT_TRUE(MatchesGlob("[]a]", "]"));
  EXPECT_TRUE(MatchesGlob("[a,{]", "{"));
}

TEST(MatchesGlob, Escapes) {
  EXPECT_TRUE(MatchesGlob("a\\*", "a*"));
  EXPECT_FALSE(MatchesGlob("a\\*", "ab"));
  EXPECT_TRUE(MatchesGlob("\\{a\\}", "{a}"));
}

TEST(MatchesGlob, HardPatternsAreQuick) {
  EXPECT_FALSE(MatchesGlob("a*a*a*a*a*a*a*a*a*a*b", std::string(5000, 'a')));
}

TEST(MatchesScope, NoneIsEverywhere) {
  EXPECT_TRUE(MatchesScope({}, "x"));
  EXPECT_TRUE(MatchesScope({"a", "x"}, "x"));
  EXPECT_FALSE(MatchesScope({"a", "b"}, "x"));
}

TEST(CheckGlob, SaysWhatIsWrong) {
  const auto message = [](const std::string& pattern) {
    return std::string(CheckGlob(pattern).message());
  };
  const std::string expected =
      "expected a pattern such as h.*.mlp or stages.{0,1}.*, found ";
  EXPECT_EQ(message("h.*"), "");
  EXPECT_EQ(message(""), expected + "'', which is empty");
  EXPECT_EQ(message("a{b"), expected + "'a{b', which does not close '{'");
  EXPECT_EQ(message("a}b"),
            expected + "'a}b', which closes a brace that is not open");
  EXPECT_EQ(message("a[b"), expected + "'a[b', which does not close '['");
  EXPECT_EQ(message("[!"), expected + "'[!', which does not close '['");
  EXPECT_EQ(message("a]"), expected + "'a]', which has ']' without '['");
  EXPECT_EQ(message("a\\"), expected + "'a\\', which ends in a backslash");
  EXPECT_EQ(message("{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}"),
            expected +
                "'{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}', which "
                "has more than 256 alternatives");
}

}  // namespace
}  // namespace partita::plan
