// Tests how attention over divided sequences is computed, and what then moves.
#include "compiler/core/long_attention.h"

#include <gtest/gtest.h>

#include <optional>

#include "compiler/core/test_resolve.h"

namespace partita::core {
namespace {

class LongAttentionTest : public ResolveTest {
 protected:
  // Attention of q [B, heads, L, 8] over as many keys, with the sequence
  // divided over the last axis of the mesh. Returns the operation.
  int AddAttention(int64_t heads, int64_t key_heads, const std::string& axes) {
    const std::string long_dims = " ,, " + axes + ",";
    const int q = AddValue({2, heads, 64, 8}, long_dims, "q");
    const int k = AddValue({2, key_heads, 64, 8}, long_dims, "k");
    const int v = AddValue({2, key_heads, 64, 8}, long_dims, "v");
    const int o = AddValue({2, heads, 64, 8}, long_dims, "o");
    const std::string q_heads = heads == key_heads ? "n" : "(n r)";
    const int op = AddOp(
        "b " + q_heads + " l h, b n k h, b n k v -> b " + q_heads + " l v",
        {q, k, v}, {o}, {{'n', key_heads}, {'r', heads / key_heads}},
        {{'k', FactorKind::kWhole}, {'h', FactorKind::kWhole}});
    const std::vector<TensorFactors> operands = graph_.ops[op].rule.operands;
    graph_.ops[op].rule.attention = AttentionFactors{
        operands[0][2][0], operands[1][2][0], operands[0][1][0]};
    graph_.ops[op].name = "attention";
    return op;
  }

  LongAttention Chosen(int op, std::optional<LongAttention> choice = {}) {
    ChooseLongAttention(shardings_, choice, graph_);
    return graph_.ops[op].attention;
  }
};

TEST_F(LongAttentionTest, MovesRowsToHeadsAndBack) {
  MakeMesh({{"s", 4}});
  const int op = AddAttention(8, 8, "s");
  ASSERT_EQ(Chosen(op), LongAttention::kUlysses);
  EXPECT_EQ(Shown(op),
            "[{}, {s}, {}, {}] [{}, {s}, {}, {}] [{}, {s}, {}, {}] -> "
            "[{}, {s}, {}, {}]");
  EXPECT_EQ(Moves(op), (Counts{{"all_to_all", 4}}));
  EXPECT_EQ(Reasons(op)[0],
            "Dimension 2 of 'q' is divided over s. 'attention' divides its "
            "heads over s instead, so that each device has all keys of its "
            "heads");
  ASSERT_EQ(Chosen(op, LongAttention::kGather), LongAttention::kGather);
  EXPECT_EQ(Moves(op), (Counts{{"all_gather", 2}}));
}

// Gathering moves 2 (n - 1) / n of a tensor, exchanging 4 (n - 1) / n^2.
TEST_F(LongAttentionTest, GathersOnTwoDevicesAndForFewKeyHeads) {
  MakeMesh({{"s", 2}});
  EXPECT_EQ(Chosen(AddAttention(8, 8, "s")), LongAttention::kGather);
  MakeMesh({{"s", 4}});
  EXPECT_EQ(Chosen(AddAttention(8, 1, "s")), LongAttention::kGather);
  EXPECT_EQ(Chosen(AddAttention(8, 4, "s")), LongAttention::kUlysses);
}

TEST_F(LongAttentionTest, NeedsEvenHeadsUnlessAskedFor) {
  MakeMesh({{"s", 4}});
  const int op = AddAttention(6, 6, "s");
  EXPECT_EQ(Chosen(op), LongAttention::kGather);
  ASSERT_EQ(Chosen(op, LongAttention::kUlysses), LongAttention::kUlysses);
  EXPECT_EQ(Moves(op), (Counts{{"all_to_all", 4}}));
}

// Two key-value heads over four devices: the axis divides them first, then the
// query heads of each.
TEST_F(LongAttentionTest, DividesKeyHeadsFirst) {
  MakeMesh({{"s", 4}});
  const int op = AddAttention(8, 2, "s");
  Chosen(op, LongAttention::kUlysses);
  EXPECT_EQ(Shown(op),
            "[{}, {s}, {}, {}] [{}, {s:(1)2}, {}, {}] [{}, {s:(1)2}, {}, {}] "
            "-> [{}, {s}, {}, {}]");
}

TEST_F(LongAttentionTest, ComposesWithDividedHeads) {
  MakeMesh({{"t", 2}, {"s", 4}});
  const int op = AddAttention(8, 8, "s");
  for (int value : graph_.ops[op].operands) Append(value, 1, "t", 0);
  Append(graph_.ops[op].results[0], 1, "t", 0);
  ASSERT_EQ(Chosen(op), LongAttention::kUlysses);
  const std::string heads = "[{}, {t, s}, {}, {}]";
  EXPECT_EQ(Shown(op), heads + " " + heads + " " + heads + " -> " + heads);
}

TEST_F(LongAttentionTest, ARingLeavesAllInPlace) {
  MakeMesh({{"s", 3}});
  const int op = AddAttention(8, 8, "s");
  ASSERT_EQ(Chosen(op, LongAttention::kRing), LongAttention::kRing);
  const std::string rows = "[{}, {}, {s}, {}]";
  EXPECT_EQ(Shown(op), rows + " " + rows + " " + rows + " -> " + rows);
  EXPECT_EQ(Moves(op), Counts());
}

TEST_F(LongAttentionTest, WholeSequencesNeedNothing) {
  MakeMesh({{"s", 4}});
  EXPECT_EQ(Chosen(AddAttention(8, 8, ""), LongAttention::kUlysses),
            LongAttention::kGather);
}

}  // namespace
}  // namespace partita::core
