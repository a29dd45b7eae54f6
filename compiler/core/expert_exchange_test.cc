// Tests how experts over the axes of their rows get these rows.
#include "compiler/core/expert_exchange.h"

#include <gtest/gtest.h>

#include "compiler/core/test_resolve.h"

namespace partita::core {
namespace {

class ExpertExchangeTest : public ResolveTest {
 protected:
  // Eight experts of rows x [64, 32]; `rows` and `experts` are axes. Returns
  // the operation.
  int AddExperts(int64_t choices, const std::string& rows,
                 const std::string& experts) {
    const int x = AddValue({64, 32}, rows + ",", "x");
    const int ids = AddValue({64, choices}, rows + ",", "ids");
    const int weights = AddValue({64, choices}, rows + ",", "weights");
    const int up = AddValue({8, 48, 32}, experts + ",,", "up", 1);
    const int down = AddValue({8, 32, 48}, experts + ",,", "down", 1);
    const int y = AddValue({64, 32}, rows + ",", "y");
    const int op =
        AddOp("t e, t k, t k, x m e, x f m -> t f", {x, ids, weights, up, down},
              {y}, {}, {{'e', FactorKind::kWhole}, {'k', FactorKind::kWhole}});
    MarkExperts(op, 3);
    return op;
  }

  // The gradients of these experts.
  int AddGradient(int64_t choices, const std::string& axis) {
    const int x = AddValue({64, 32}, axis + ",", "x");
    const int ids = AddValue({64, choices}, axis + ",", "ids");
    const int weights = AddValue({64, choices}, axis + ",", "weights");
    const int grad = AddValue({64, 32}, axis + ",", "grad");
    const int up = AddValue({8, 48, 32}, axis + ",,", "up", 1);
    const int of_x = AddValue({64, 32}, axis + ",", "of x");
    const int of_weights = AddValue({64, choices}, axis + ",", "of weights");
    const int of_up = AddValue({8, 48, 32}, axis + ",,", "of up", 1);
    const int op =
        AddOp("t e, t k, t k, t f, x m e -> t e, t k, x m e",
              {x, ids, weights, grad, up}, {of_x, of_weights, of_up}, {},
              {{'e', FactorKind::kWhole}, {'k', FactorKind::kWhole}});
    MarkExperts(op, 4);
    return op;
  }

  const RowExchange& Chosen(int op, const ExpertChoice& choice = {}) {
    counts_ = ChooseExpertExchange(shardings_, choice, graph_);
    return graph_.ops[op].rows;
  }

  ExpertCounts counts_;

 private:
  void MarkExperts(int op, int up) {
    ShardingRule& rule = graph_.ops[op].rule;
    rule.experts = rule.operands[up][0][0];
    rule.factors[rule.experts].keeps_axes = true;
    graph_.ops[op].name = "experts";
  }
};

// Gathering moves n - 1 rows for each of a device, sending k (n - 1) / n.
TEST_F(ExpertExchangeTest, TakesWhatMovesFewerBytes) {
  MakeMesh({{"d", 4}});
  const int few = AddExperts(2, "d", "d");
  const RowExchange& rows = Chosen(few);
  EXPECT_EQ(rows.way, ExpertExchange::kRows);
  EXPECT_EQ(rows.gathered_bytes, 3 * 16 * (32 + 2 + 2 + 32) * 4);
  EXPECT_EQ(rows.sent_bytes, 24 * (64 * 4 + 8));
  EXPECT_EQ(Shown(few),
            "[{d}, {}] [{d}, {}] [{d}, {}] [{d}, {}, {}] [{d}, {}, {}] -> "
            "[{d}, {}]");
  EXPECT_EQ(Moves(few), Counts());

  const int many = AddExperts(6, "d", "d");
  EXPECT_EQ(Chosen(many).way, ExpertExchange::kGather);
  EXPECT_EQ(Moves(many), (Counts{{"all_gather", 3}, {"reduce_scatter", 1}}));
  EXPECT_EQ(Reasons(many)[0],
            "Axis 'd' stays with dimension 0 of 'up': this operation keeps it "
            "there, although the entry of dimension 0 of 'x' (an annotation or "
            "override) comes before it (priority 1); gathering rows moves " +
                std::to_string(Chosen(many).gathered_bytes) +
                " bytes, sending each to its experts would move " +
                std::to_string(Chosen(many).sent_bytes));
  EXPECT_EQ(counts_.shared, 2);
  EXPECT_EQ(counts_.by_rows, 1);
}

TEST_F(ExpertExchangeTest, DoesWhatIsAsked) {
  MakeMesh({{"d", 4}});
  const int op = AddExperts(6, "d", "d");
  EXPECT_EQ(Chosen(op, {ExpertExchange::kRows, 1.5}).way,
            ExpertExchange::kRows);
  EXPECT_EQ(graph_.ops[op].rows.bound, 1.5);
  EXPECT_EQ(counts_.as_asked, 1);
  EXPECT_EQ(Chosen(op, {ExpertExchange::kGather, 1.5}).way,
            ExpertExchange::kGather);
  EXPECT_EQ(graph_.ops[op].rows.bound, 0);
}

// Gradients of rows are whole at home, gradients of experts at their holders.
TEST_F(ExpertExchangeTest, NothingIsPartialOverTheSharedAxis) {
  MakeMesh({{"d", 4}});
  const int op = AddGradient(2, "d");
  ASSERT_EQ(Chosen(op).way, ExpertExchange::kRows);
  EXPECT_EQ(Shown(op),
            "[{d}, {}] [{d}, {}] [{d}, {}] [{d}, {}] [{d}, {}, {}] -> "
            "[{d}, {}] [{d}, {}] [{d}, {}, {}]");
}

// Only the axis that rows have in common with experts is exchanged over.
TEST_F(ExpertExchangeTest, OtherAxesOfRowsStayPartialForExperts) {
  MakeMesh({{"d", 2}, {"p", 2}});
  const int op = AddExperts(1, "d p", "d");
  ASSERT_EQ(Chosen(op, {ExpertExchange::kRows, 0}).way, ExpertExchange::kRows);
  EXPECT_EQ(Moves(op), Counts());
}

TEST_F(ExpertExchangeTest, NeedsRowsOverEveryAxisOfTheExperts) {
  MakeMesh({{"d", 2}, {"p", 2}});
  const int apart = AddExperts(1, "d", "p");
  EXPECT_EQ(Chosen(apart, {ExpertExchange::kRows, 0}).way,
            ExpertExchange::kGather);
  EXPECT_EQ(counts_.shared, 0);
  const int more = AddExperts(1, "d", "d p");
  EXPECT_EQ(Chosen(more, {ExpertExchange::kRows, 0}).way,
            ExpertExchange::kGather);
  EXPECT_EQ(counts_.shared, 1);
  EXPECT_EQ(counts_.as_asked, 0);
}

}  // namespace
}  // namespace partita::core
