#include "tests/bench/planner/regret.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace partita::planner {
namespace {

using ::testing::HasSubstr;

constexpr char kHeader[] =
    "model,layers,hidden,heads,seq_len,vocab,n_gpus,gpu,gpus_per_node,tp,pp,dp,"
    "mbs,gbs,recompute,precision,framework,iter_time_s,status\n";

// A GPT of 24 layers on 8 GPUs, divided over tp x pp x dp.
std::string Row(const std::string& division, const std::string& seconds,
                const std::string& status = "ok") {
  return "gpt,24,2048,16,1024,51200,8,A100-80GB-SXM4,8," + division +
         ",1,64,none,bf16,Megatron-LM," + seconds + "," + status + "\n";
}

std::vector<RegretGroup> Groups(const std::string& rows) {
  auto groups = RegretsOf(kHeader + rows, "table");
  EXPECT_TRUE(groups.ok()) << groups.status();
  return groups.ok() ? *groups : std::vector<RegretGroup>();
}

// Within a node, tp of 8 exchanges the most by far: it is predicted to be slow,
// whatever was measured.
TEST(Regret, IsOfMeasuredSeconds) {
  const auto right = Groups(Row("1,1,8", "2.0") + Row("8,1,1", "3.0"));
  ASSERT_EQ(right.size(), 1u);
  EXPECT_EQ(right[0].name, "gpt, 8 x A100-80GB-SXM4, batch 64");
  EXPECT_EQ(right[0].divisions, 2);
  EXPECT_TRUE(right[0].hasPick());
  EXPECT_EQ(right[0].pick, right[0].fastest);
  EXPECT_EQ(right[0].regret(), 0);

  const auto wrong = Groups(Row("1,1,8", "3.0") + Row("8,1,1", "2.0"));
  ASSERT_EQ(wrong.size(), 1u);
  EXPECT_THAT(wrong[0].pick, HasSubstr("tp 1 x pp 1 x dp 8"));
  EXPECT_THAT(wrong[0].fastest, HasSubstr("tp 8 x pp 1 x dp 1"));
  EXPECT_EQ(wrong[0].pick_seconds, 3.0);
  EXPECT_DOUBLE_EQ(wrong[0].regret(), 0.5);
}

TEST(Regret, LeavesOutWhatDidNotRunAndSingleRows) {
  EXPECT_TRUE(Groups(Row("1,1,8", "2.0")).empty());
  EXPECT_TRUE(Groups(Row("1,1,8", "2.0") + Row("8,1,1", "", "oom")).empty());
  EXPECT_TRUE(Groups(Row("1,1,8", "2.0") + Row("8,1,1", "1.0", "oom")).empty());
  // No division is printed.
  EXPECT_TRUE(Groups(Row("1,1,8", "2.0") + Row(",,", "1.0")).empty());
}

// A group with one division that was measured twice offers no choice.
TEST(Regret, CountsTheMeanOfADivisionsRows) {
  EXPECT_TRUE(Groups(Row("1,1,8", "2.0") + Row("1,1,8", "3.0")).empty());
  const auto groups =
      Groups(Row("1,1,8", "2.0") + Row("1,1,8", "4.0") + Row("8,1,1", "2.5"));
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0].divisions, 2);
  EXPECT_DOUBLE_EQ(groups[0].pick_seconds, 3.0);
  EXPECT_DOUBLE_EQ(groups[0].fastest_seconds, 2.5);
}

TEST(Regret, RefusesOtherTables) {
  EXPECT_FALSE(RegretsOf("a,b\n1,2\n", "table").ok());
}

// The excerpt of published runs has two groups; ../README.md has the figures of
// all runs.
TEST(Regret, OfPublishedRunsIsSmall) {
  int groups = 0;
  double sum = 0;
  for (const char* source : {"alpa_osdi22", "bigscience_tr11_prequel",
                             "mosaicml_llm_foundry", "torchtitan"}) {
    std::ostringstream text;
    text << std::ifstream("tests/data/published/" + std::string(source) +
                          ".csv")
                .rdbuf();
    const auto found = RegretsOf(text.str(), source);
    ASSERT_TRUE(found.ok()) << found.status();
    for (const RegretGroup& group : *found) {
      if (!group.hasPick()) continue;
      ++groups;
      sum += group.regret();
    }
  }
  ASSERT_GE(groups, 2);
  // 6.1 % of two groups when the bound was set.
  EXPECT_LT(sum / groups, 0.08);
}

}  // namespace
}  // namespace partita::planner
