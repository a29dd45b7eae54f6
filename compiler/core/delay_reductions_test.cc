#include "compiler/core/delay_reductions.h"

#include <gmock/gmock.h>

#include "compiler/core/test_graph.h"

namespace partita::core {
namespace {

class DelayReductionsTest : public GraphTest {
 protected:
  DelayReductionsTest() { MakeMesh({{"t", 2}, {"d", 2}}); }

  // x w^T, with a divided inner dimension.
  int PartialProduct(const std::string& result = "?, ?") {
    const int x = AddValue({8, 4}, ", t"), w = AddValue({6, 4}, ", t");
    const int y = AddValue({8, 6}, result);
    AddOp("i k, j k -> i j", {x, w}, {y}, {}, {{'k', FactorKind::kReduced}});
    return y;
  }
  int Sum(int a, int b, const std::string& result = "?, ?") {
    const int sum = AddValue({8, 6}, result);
    const int op = AddOp("i j, i j -> i j", {a, b}, {sum});
    graph_.ops[op].rule.linear = {0, 1};
    return sum;
  }
  int Widened(int value) {
    const int wide = AddValue({8, 6}, "?, ?");
    const int op = AddOp("i j -> i j", {value}, {wide});
    graph_.ops[op].rule.linear = {0};
    return wide;
  }
  void Read(int value) {
    AddOp("i j -> i j", {value}, {AddValue({8, 6}, "?, ?")});
  }
  void Run() { DelayReductions(graph_, shardings_); }
};

TEST_F(DelayReductionsTest, ASumOfPartialSumsIsReducedOnce) {
  const int a = PartialProduct(), b = PartialProduct(), c = PartialProduct();
  const int ab = Sum(a, b), abc = Sum(ab, c);
  Read(abc);
  Run();
  for (int value : {a, b, ab, c})
    EXPECT_EQ(shardings_[value].unreduced, std::vector{Ref("t")});
  EXPECT_TRUE(shardings_[abc].unreduced.empty());
  const OpSharding last =
      Resolve(graph_, static_cast<int>(graph_.ops.size()) - 2, shardings_);
  EXPECT_EQ(last.results[0].unreduced, std::vector{Ref("t")});
}

TEST_F(DelayReductionsTest, WhatIsReducedToAShardStaysASum) {
  const int a = PartialProduct("t?, ?"), b = PartialProduct("t?, ?");
  const int sum = Sum(a, b, "t?, ?");
  Read(sum);
  Run();
  EXPECT_EQ(shardings_[a].unreduced, std::vector{Ref("t")});
  EXPECT_TRUE(shardings_[a].dims[0].axes.empty());
  EXPECT_TRUE(shardings_[sum].unreduced.empty());
  EXPECT_EQ(shardings_[sum].dims[0].axes, std::vector{Ref("t")});
}

TEST_F(DelayReductionsTest, WhatOtherAxesDivideFirstStaysDivided) {
  const int a = PartialProduct("d t?, ?"), b = PartialProduct("d t?, ?");
  Read(Sum(a, b, "d t?, ?"));
  // 6 rows over 4 devices have blocks of 2; over 2 devices, blocks of 3.
  const int odd = AddValue({8, 6}, "?, d t?"),
            same = AddValue({8, 6}, "?, d t?");
  for (int result : {odd, same})
    AddOp("i k, j k -> i j", {AddValue({8, 4}, ", t"), AddValue({6, 4}, ", t")},
          {result}, {}, {{'k', FactorKind::kReduced}});
  Read(Sum(odd, same, "?, d t?"));
  Run();
  EXPECT_EQ(shardings_[a].unreduced, std::vector{Ref("t")});
  EXPECT_EQ(shardings_[a].dims[0].axes, std::vector{Ref("d")});
  EXPECT_TRUE(shardings_[odd].unreduced.empty());
}

TEST_F(DelayReductionsTest, SharesAreTakenAsTheyAre) {
  const int a = PartialProduct(), b = PartialProduct(), sum = Sum(a, b);
  const int shares = AddValue({2, 8, 6}, "t, , ");
  const int op = AddOp("i j -> r i j", {sum}, {shares});
  graph_.ops[op].rule.linear = {0};
  graph_.ops[op].takes_shares = true;
  Run();
  for (int value : {a, b, sum})
    EXPECT_EQ(shardings_[value].unreduced, std::vector{Ref("t")});
  const OpSharding decided = Resolve(graph_, op, shardings_);
  EXPECT_EQ(decided.operands[0].unreduced, std::vector{Ref("t")});
  EXPECT_TRUE(decided.results[0].unreduced.empty());
  EXPECT_EQ(decided.results[0].dims[0].axes, std::vector{Ref("t")});
}

TEST_F(DelayReductionsTest, SharesMayBeLargerThanPartialSums) {
  for (const bool takes_shares : {true, false}) {
    const int a = PartialProduct(), padded = AddValue({64, 6}, "?, ?");
    const int pad = AddOp("i j -> k j", {a}, {padded});
    graph_.ops[pad].rule.linear = {0};
    const int op =
        AddOp("i j -> r i j", {padded}, {AddValue({2, 64, 6}, "t, , ")});
    graph_.ops[op].rule.linear = {0};
    graph_.ops[op].takes_shares = takes_shares;
    Run();
    EXPECT_EQ(shardings_[a].unreduced.empty(), !takes_shares);
    EXPECT_EQ(shardings_[padded].unreduced.empty(), !takes_shares);
  }
}

TEST_F(DelayReductionsTest, SharesOfOtherAxesAreWhole) {
  const int sum = Sum(PartialProduct(), PartialProduct());
  const int op = AddOp("i j -> r i j", {sum}, {AddValue({2, 8, 6}, "d, , ")});
  graph_.ops[op].rule.linear = {0};
  graph_.ops[op].takes_shares = true;
  Run();
  EXPECT_TRUE(shardings_[sum].unreduced.empty());
  EXPECT_TRUE(Resolve(graph_, op, shardings_).operands[0].unreduced.empty());
}

TEST_F(DelayReductionsTest, NotBesideAWholeValue) {
  const int a = PartialProduct(), residual = AddValue({8, 6}, "?, ?");
  Read(Sum(a, residual));
  Run();
  EXPECT_TRUE(shardings_[a].unreduced.empty());
}

TEST_F(DelayReductionsTest, NotWhereItIsReadOtherwiseToo) {
  const int a = PartialProduct(), b = PartialProduct();
  Read(Sum(a, b));
  Read(a);
  Run();
  EXPECT_TRUE(shardings_[a].unreduced.empty());
  EXPECT_TRUE(shardings_[b].unreduced.empty());
}

TEST_F(DelayReductionsTest, TwoSumsOfThreeAreLessThanThree) {
  const int a = PartialProduct(), b = PartialProduct(), c = PartialProduct();
  const int ab = Sum(a, b), ac = Sum(a, c);
  Read(ab);
  Read(ac);
  Run();
  for (int value : {a, b, c})
    EXPECT_EQ(shardings_[value].unreduced, std::vector{Ref("t")});
  EXPECT_TRUE(shardings_[ab].unreduced.empty());
  EXPECT_TRUE(shardings_[ac].unreduced.empty());
}

TEST_F(DelayReductionsTest, NotWhereThreeSumsWouldBeReducedForOneValue) {
  const int a = PartialProduct(), b = PartialProduct(), c = PartialProduct(),
            d = PartialProduct();
  for (int other : {b, c, d}) Read(Sum(a, other));
  Run();
  for (int value : {a, b, c, d})
    EXPECT_TRUE(shardings_[value].unreduced.empty());
}

TEST_F(DelayReductionsTest, NotWhereTheResultIsLarger) {
  const int a = PartialProduct();
  const int wide = AddValue({5, 8, 6}, "?, ?, ?");
  graph_.ops[AddOp("i j -> n i j", {a}, {wide})].rule.linear = {0};
  AddOp("n i j -> n i j", {wide}, {AddValue({5, 8, 6}, "?, ?, ?")});
  Run();
  EXPECT_TRUE(shardings_[a].unreduced.empty());
}

// 16-bit gradients of microbatches are added in 32 bits.
TEST_F(DelayReductionsTest, WhatIsWidenedToBeAddedIsReducedOnce) {
  std::vector<int> narrow, wide;
  for (int i = 0; i < 3; ++i) {
    narrow.push_back(PartialProduct());
    graph_.values[narrow.back()].element_bytes = 2;
    wide.push_back(Widened(narrow.back()));
  }
  const int two = Sum(wide[0], wide[1]), all = Sum(two, wide[2]);
  Read(all);
  Run();
  for (int value : {narrow[0], narrow[1], narrow[2], wide[0], wide[1], two})
    EXPECT_EQ(shardings_[value].unreduced, std::vector{Ref("t")}) << value;
  EXPECT_TRUE(shardings_[all].unreduced.empty());
}

TEST_F(DelayReductionsTest, WhatIsWidenedAloneIsReducedBefore) {
  const int narrow = PartialProduct();
  graph_.values[narrow].element_bytes = 2;
  const int wide = Widened(narrow);
  Read(wide);
  // A sum with a value that is not partial is not delayed either.
  const int other = PartialProduct();
  graph_.values[other].element_bytes = 2;
  Read(Sum(Widened(other), AddValue({8, 6}, "?, ?")));
  Run();
  EXPECT_TRUE(shardings_[narrow].unreduced.empty());
  EXPECT_TRUE(shardings_[wide].unreduced.empty());
  EXPECT_TRUE(shardings_[other].unreduced.empty());
}

TEST_F(DelayReductionsTest, WhatAFunctionReturnsIsReducedByItsCallers) {
  const int a = PartialProduct();
  std::vector<int> callers;
  for (int i = 0; i < 3; ++i) {
    callers.push_back(AddValue({8, 6}, "?, ?"));
    Op& tie = graph_.ops[AddOp("i j -> i j", {a}, {callers.back()})];
    tie.rule.linear = {0};
    tie.is_tie = true;
  }
  Run();
  EXPECT_EQ(shardings_[a].unreduced, std::vector{Ref("t")});
  for (int caller : callers) EXPECT_TRUE(shardings_[caller].unreduced.empty());
}

// The gradient of a norm's bias: its operand is already reduced.
TEST_F(DelayReductionsTest, WhatIsMadeOfAReducedValueIsWhole) {
  const int a = PartialProduct();
  Read(a);
  const int sum = Sum(a, a), again = Sum(sum, sum);
  Read(again);
  Run();
  for (int value : {a, sum, again})
    EXPECT_TRUE(shardings_[value].unreduced.empty());
}

TEST_F(DelayReductionsTest, ZerosArePartialSums) {
  const int a = PartialProduct(), zeros = AddValue({8, 6}, "?, ?");
  graph_.values[zeros].is_zero = true;
  const int sum = Sum(a, zeros), b = PartialProduct();
  Read(Sum(sum, b));
  Run();
  for (int value : {a, sum, b})
    EXPECT_EQ(shardings_[value].unreduced, std::vector{Ref("t")});
}

TEST_F(DelayReductionsTest, ClosedDimensionsStay) {
  const int a = PartialProduct("t, ?"), b = PartialProduct("t, ?");
  Read(Sum(a, b));
  Run();
  EXPECT_TRUE(shardings_[a].unreduced.empty());
}

}  // namespace
}  // namespace partita::core
