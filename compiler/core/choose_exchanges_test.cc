// Tests when attention exchanges rows for heads, and what then moves.
#include "compiler/core/choose_exchanges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/core/test_resolve.h"

namespace partita::core {
namespace {

using ::testing::ElementsAre;

class ExchangeTest : public ResolveTest {
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
    const ShardingRule& rule = graph_.ops[op].rule;
    graph_.ops[op].rule.exchange =
        Exchange{rule.operands[0][2][0], rule.operands[0][1][0]};
    graph_.ops[op].name = "attention";
    return op;
  }

  bool Exchanges(int op, ExchangeChoice choice) {
    ChooseExchanges(shardings_, choice, graph_);
    return graph_.ops[op].exchanges;
  }
};

TEST_F(ExchangeTest, MovesRowsToHeadsAndBack) {
  MakeMesh({{"s", 4}});
  const int op = AddAttention(8, 8, "s");
  ASSERT_TRUE(Exchanges(op, ExchangeChoice::kCheapest));
  EXPECT_EQ(Shown(op),
            "[{}, {s}, {}, {}] [{}, {s}, {}, {}] [{}, {s}, {}, {}] -> "
            "[{}, {s}, {}, {}]");
  EXPECT_EQ(Moves(op), (Counts{{"all_to_all", 4}}));
  EXPECT_EQ(Reasons(op)[0],
            "Dimension 2 of 'q' is divided over s. 'attention' divides its "
            "heads over s instead, so that each device has all keys of its "
            "heads");
  ASSERT_FALSE(Exchanges(op, ExchangeChoice::kNever));
  EXPECT_EQ(Moves(op), (Counts{{"all_gather", 2}}));
}

// Gathering moves 2 (n - 1) / n of a tensor, exchanging 4 (n - 1) / n^2.
TEST_F(ExchangeTest, GathersOnTwoDevicesAndForFewKeyHeads) {
  MakeMesh({{"s", 2}});
  EXPECT_FALSE(Exchanges(AddAttention(8, 8, "s"), ExchangeChoice::kCheapest));
  MakeMesh({{"s", 4}});
  EXPECT_FALSE(Exchanges(AddAttention(8, 1, "s"), ExchangeChoice::kCheapest));
  EXPECT_TRUE(Exchanges(AddAttention(8, 4, "s"), ExchangeChoice::kCheapest));
}

TEST_F(ExchangeTest, NeedsEvenHeadsUnlessAskedFor) {
  MakeMesh({{"s", 4}});
  const int op = AddAttention(6, 6, "s");
  EXPECT_FALSE(Exchanges(op, ExchangeChoice::kCheapest));
  ASSERT_TRUE(Exchanges(op, ExchangeChoice::kAlways));
  EXPECT_EQ(Moves(op), (Counts{{"all_to_all", 4}}));
}

// Two key-value heads over four devices: the axis divides them first, then the
// query heads of each.
TEST_F(ExchangeTest, DividesKeyHeadsFirst) {
  MakeMesh({{"s", 4}});
  const int op = AddAttention(8, 2, "s");
  ASSERT_TRUE(Exchanges(op, ExchangeChoice::kAlways));
  EXPECT_EQ(Shown(op),
            "[{}, {s}, {}, {}] [{}, {s:(1)2}, {}, {}] [{}, {s:(1)2}, {}, {}] "
            "-> [{}, {s}, {}, {}]");
}

TEST_F(ExchangeTest, ComposesWithDividedHeads) {
  MakeMesh({{"t", 2}, {"s", 4}});
  const int op = AddAttention(8, 8, "s");
  for (int value : graph_.ops[op].operands) Append(value, 1, "t", 0);
  Append(graph_.ops[op].results[0], 1, "t", 0);
  ASSERT_TRUE(Exchanges(op, ExchangeChoice::kCheapest));
  const std::string heads = "[{}, {t, s}, {}, {}]";
  EXPECT_EQ(Shown(op), heads + " " + heads + " " + heads + " -> " + heads);
}

TEST_F(ExchangeTest, WholeSequencesNeedNone) {
  MakeMesh({{"s", 4}});
  EXPECT_FALSE(Exchanges(AddAttention(8, 8, ""), ExchangeChoice::kAlways));
}

}  // namespace
}  // namespace partita::core
