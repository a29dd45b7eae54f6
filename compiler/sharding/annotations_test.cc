#include "compiler/sharding/annotations.h"

#include <gtest/gtest.h>

#include "compiler/plan/plan.h"
#include "compiler/sharding/parameter_views.h"

namespace partita::sharding {
namespace {

const core::Mesh kMesh{{{"a", 2}, {"b", 3}, {"c", 6}}, {}};

core::Sharding sharding(const std::string& text) {
  return plan::ParseShardingText(text, kMesh).value();
}

// Returns the merged sharding, or the contradiction.
std::string merged(const std::string& given, const std::string& other) {
  core::Sharding result;
  const std::string wrong =
      mergeAnnotations(kMesh, sharding(given), sharding(other), result);
  return wrong.empty() ? core::ToString(kMesh, result) : wrong;
}

TEST(MergeAnnotations, OpenDimensionsTakeMore) {
  EXPECT_EQ(merged("[{?}, {?}]", "[{a}, {}]"), "[{a}, {}]");
  EXPECT_EQ(merged("[{a, ?}, {?}]", "[{a, b}, {?}]"), "[{a, b}, {?}]");
  EXPECT_EQ(merged("[{a}, {b}]", "[{a}, {b, ?}]"), "[{a}, {b}]");
  EXPECT_EQ(merged("[{?}] replicated={a}", "[{b}] replicated={c}"),
            "[{b}] replicated={a, c}");
}

TEST(MergeAnnotations, ClosedOnesHold) {
  EXPECT_EQ(merged("[{}, {?}]", "[{a}, {}]"),
            "dimension 0: it is closed there");
  EXPECT_EQ(merged("[{a, b, ?}]", "[{a}]"),
            "dimension 0: it is closed, with less, here");
  EXPECT_EQ(merged("[{a, ?}]", "[{b}]"), "dimension 0: other axes are there");
  EXPECT_EQ(merged("[{?}, {a, ?}]", "[{a}, {?}]"), "axis 'a' is used twice");
  EXPECT_EQ(merged("[{?}] replicated={a}", "[{a}]"), "axis 'a' is used twice");
  EXPECT_EQ(merged("[{a}|4]", "[{a}|5]"),
            "dimension 0: shards of 4 rows are there");
}

std::string viewed(std::vector<int64_t> from, std::vector<int64_t> to,
                   const std::string& text) {
  core::Sharding result;
  const std::string wrong =
      viewSharding(kMesh, from, to, sharding(text), result);
  return wrong.empty() ? core::ToString(kMesh, result) : wrong;
}

TEST(ViewSharding, AxesGoToTheFirstFactor) {
  EXPECT_EQ(viewed({8, 96}, {8, 3, 32}, "[{a}, {b}]"), "[{a}, {b}, {}]");
  EXPECT_EQ(viewed({96, 8}, {4, 24, 8}, "[{a, ?}, {b, ?}]"),
            "[{a, ?}, {?}, {b, ?}]");
  EXPECT_EQ(viewed({3, 32}, {96}, "[{b}, {}]"), "[{b}]");
}

TEST(ViewSharding, RunsOfRowsStayRunsOfRows) {
  EXPECT_EQ(viewed({5, 3, 8}, {5, 24}, "[{}, {a}, {}]"), "[{}, {a}|16]");
  EXPECT_EQ(viewed({5, 24}, {5, 3, 8}, "[{}, {a}|16]"), "[{}, {a}, {}]");
  // The heads of q, k and v are three separate runs of rows.
  EXPECT_NE(viewed({5, 3, 4, 8}, {5, 96}, "[{}, {}, {a}, {}]"), "");
}

TEST(ViewSharding, SmallShardsDivideTheNextFactorToo) {
  EXPECT_EQ(viewed({96}, {3, 32}, "[{c}]"), "[{c:(1)3}, {c:(3)2}]");
}

TEST(ViewSharding, WhatCutsThroughRowsIsRefused) {
  EXPECT_EQ(viewed({96}, {3, 32}, "[{a}]"),
            "a dimension of 96 rows is divided into shards of 48, where the "
            "compiler views it as 3 x 32, which they would cut through; divide "
            "it into shards that are multiples of 32 rows, or write the "
            "override for the view");
  EXPECT_EQ(viewed({3, 32}, {96}, "[{}, {a}]"),
            "dimensions of 3 x 32 rows are divided, which the compiler views "
            "as one of 96; divide the first of them alone, or write the "
            "override for the view");
}

}  // namespace
}  // namespace partita::sharding
