#include "compiler/sharding/dim_groups.h"

#include <gtest/gtest.h>

#include <string>

namespace partita::sharding {
namespace {

// Formats groups as "0-1>0 2>1": dimensions 0 to 1 become 0, and 2 becomes 1.
// "." marks an empty side.
std::string groupsOf(llvm::ArrayRef<int64_t> from, llvm::ArrayRef<int64_t> to) {
  auto groups = groupDims(from, to);
  if (!groups) return "none";
  auto range = [](int64_t begin, int64_t end) -> std::string {
    if (begin == end) return ".";
    if (begin + 1 == end) return std::to_string(begin);
    return std::to_string(begin) + "-" + std::to_string(end - 1);
  };
  std::string text;
  for (const DimGroup& group : *groups)
    text += (text.empty() ? "" : " ") +
            range(group.from_begin, group.from_end) + ">" +
            range(group.to_begin, group.to_end);
  return text;
}

TEST(DimGroupsTest, MergesAndSplits) {
  EXPECT_EQ(groupsOf({4, 8, 32}, {32, 32}), "0-1>0 2>1");
  EXPECT_EQ(groupsOf({32, 96}, {4, 8, 3, 32}), "0>0-1 1>2-3");
  EXPECT_EQ(groupsOf({4, 8, 4, 8}, {32, 32}), "0-1>0 2-3>1");
}

TEST(DimGroupsTest, SmallestGroups) {
  EXPECT_EQ(groupsOf({2, 3, 4}, {2, 3, 4}), "0>0 1>1 2>2");
  EXPECT_EQ(groupsOf({2, 6}, {4, 3}), "0-1>0-1");
  EXPECT_EQ(groupsOf({6, 4, 5}, {4, 6, 5}), "0-1>0-1 2>2");
}

TEST(DimGroupsTest, OnesStandAlone) {
  EXPECT_EQ(groupsOf({4, 1, 8}, {4, 8}), "0>0 1>. 2>1");
  EXPECT_EQ(groupsOf({4, 8}, {1, 4, 8, 1}), ".>0 0>1 1>2 .>3");
  EXPECT_EQ(groupsOf({1, 4}, {1, 4}), "0>0 1>1");
  EXPECT_EQ(groupsOf({}, {1}), ".>0");
}

TEST(DimGroupsTest, NoneForOtherCountsAndForNothing) {
  EXPECT_EQ(groupsOf({4}, {5}), "none");
  EXPECT_EQ(groupsOf({0, 4}, {0}), "none");
}

}  // namespace
}  // namespace partita::sharding
