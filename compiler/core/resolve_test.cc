// Tests how single operations are computed: conflicts and partial sums. B cases
// are inputs of Shardy's export tests (openxla/shardy,
// shardy/dialect/sdy/transforms/export/test) and of MLIR's shard dialect.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

#include "compiler/core/projection.h"
#include "compiler/core/propagate.h"
#include "compiler/core/reshard.h"
#include "compiler/core/test_resolve.h"

namespace partita::core {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(ResolveTest, ContractionKeepsTheAxisOfItsResult) {  // B8
  MakeMesh({{"x", 4}, {"y", 2}});
  const int lhs = AddValue({8, 32}, "x, y"), rhs = AddValue({32, 16}, "y, ");
  const int out = AddValue({8, 16}, "x, y");
  const int dot = AddOp("i k, k j -> i j", {lhs, rhs}, {out});
  // Unreduced over y, annotated with y on its columns: a reduce-scatter, where
  // Shardy uses an all-reduce and a slice.
  EXPECT_EQ(Shown(dot), "[{x}, {y}] [{y}, {}] -> [{x}, {}] unreduced={y}");
}

TEST_F(ResolveTest, SquareGathersBothSides) {  // B9
  MakeMesh({{"x", 2}, {"y", 2}});
  const int a = AddValue({16, 16}, "x, y"), out = AddValue({16, 16}, "x, y");
  const int dot = AddOp("i k, k j -> i j", {a, a}, {out});
  EXPECT_EQ(Shown(dot), "[{x}, {}] [{}, {y}] -> [{x}, {y}]");
}

TEST_F(ResolveTest, PartialSumsPassThroughAdditions) {  // B11
  MakeMesh({{"x", 2}, {"y", 2}});
  const int in = AddValue({8, 8}, ", x y"), sum = AddValue({8}),
            other = AddValue({8});
  const int out = AddValue({8});
  shardings_[sum].unreduced = shardings_[other].unreduced = {Ref("x")};
  const int reduce = AddOp("i k -> i", {in}, {sum});
  const int add = AddElementwise({sum, other}, out);
  graph_.ops[add].rule.linear = {0, 1};
  EXPECT_EQ(Shown(reduce), "[{}, {x, y}] -> [{}] unreduced={x, y}");
  EXPECT_EQ(Shown(add),
            "[{}] unreduced={x} [{}] unreduced={x} -> [{}] "
            "unreduced={x}");
  // Its result is divided over x, but the addition still comes first.
  Annotate(out, "x");
  EXPECT_EQ(Shown(add),
            "[{}] unreduced={x} [{}] unreduced={x} -> [{}] "
            "unreduced={x}");
  // Not if one summand is not partial.
  shardings_[other].unreduced.clear();
  EXPECT_EQ(Shown(add), "[{x}] [{x}] -> [{x}]");
}

TEST_F(ResolveTest, BatchedProduct) {  // B13
  MakeMesh({{"a", 2}, {"b", 4}});
  const int lhs = AddValue({2, 16, 8}, "?, a?, b?"), rhs = AddValue({2, 8, 32});
  const int out = AddValue({2, 16, 32});
  const int dot = AddOp("n i k, n k j -> n i j", {lhs, rhs}, {out});
  Run();
  EXPECT_EQ(Text(rhs), "[{}, {b}, {}]");
  EXPECT_EQ(Text(out), "[{}, {a}, {}]");
  EXPECT_EQ(Shown(dot),
            "[{}, {a}, {b}] [{}, {b}, {}] -> [{}, {a}, {}] unreduced={b}");
}

TEST_F(ResolveTest, OneDividedOperandOrResultDividesTheOperation) {
  MakeMesh({{"a", 2}});
  const int x = AddValue({8, 8}, ", "), w = AddValue({8, 8}, ", ");
  const int columns = AddValue({8, 8}, ", a"), rows = AddValue({8, 8}, "a, ");
  const int y = AddValue({8, 8}, ", ");
  EXPECT_EQ(Shown(AddOp("i k, k j -> i j", {x, w}, {columns})),
            "[{}, {}] [{}, {a}] -> [{}, {a}]");
  EXPECT_EQ(Shown(AddOp("i k, k j -> i j", {x, rows}, {y})),
            "[{}, {a}] [{a}, {}] -> [{}, {}] unreduced={a}");
  EXPECT_EQ(Shown(AddElementwise({x, rows}, y)),
            "[{a}, {}] [{a}, {}] -> [{a}, {}]");
}

TEST_F(ResolveTest, SummandsThatDisagree) {
  MakeMesh({{"a", 2}, {"b", 2}});
  const int x = AddValue({8, 8}, "a, ", "x"), y = AddValue({8, 8}, "b, ", "y");
  const int sum = AddValue({8, 8}, ", ", "sum");
  const int add = AddElementwise({x, y}, sum);
  EXPECT_EQ(Shown(add), "[{a}, {}] [{a}, {}] -> [{a}, {}]");
  EXPECT_THAT(Reasons(add),
              ElementsAre("Dimension 0 of 'x' is divided over a and dimension "
                          "0 of 'y' over b: the first is kept"));
  // Two of three agree.
  Annotate(sum, "b, ");
  EXPECT_EQ(Shown(add), "[{b}, {}] [{b}, {}] -> [{b}, {}]");
  // An earlier entry wins over both.
  shardings_[y].dims[0].SetPriority(1);
  shardings_[sum].dims[0].SetPriority(1);
  EXPECT_EQ(Shown(add), "[{a}, {}] [{a}, {}] -> [{a}, {}]");
}

// If the longer list loses its first axis, the other wishes count.
TEST_F(ResolveTest, LoserFallsBackOnOtherWishes) {
  MakeMesh({{"data", 2}, {"t", 2}});
  const int x = AddValue({8, 8}, "data?, ?"),
            w = AddValue({8, 8}, "?, data t?", "", 1);
  const int y = AddValue({8, 8}, "data?, t?", "", 1);
  shardings_[y].dims[0].SetPriority(0);
  const int dot = AddOp("i k, k j -> i j", {x, w}, {y});
  EXPECT_EQ(Shown(dot), "[{data}, {}] [{}, {t}] -> [{data}, {t}]");
}

// B over data first, and over pod only after M's entry.
TEST_F(ResolveTest, EachAxisHasThePriorityOfItsEntry) {
  MakeMesh({{"data", 2}, {"pod", 2}});
  const int x = AddValue({64, 8}, "", "x"), up = AddValue({8, 8}, "", "up");
  const int h = AddValue({64, 8}, "", "h");
  Append(x, 0, "data", 1);
  Append(x, 0, "pod", 3);
  Append(up, 1, "pod", 2);
  Append(h, 0, "data", 1);
  Append(h, 0, "pod", 3);
  const int dot = AddOp("b e, e m -> b m", {x, up}, {h});
  EXPECT_EQ(Shown(dot), "[{data}, {}] [{}, {pod}] -> [{data}, {pod}]");
  EXPECT_THAT(Reasons(dot),
              ElementsAre("Axis 'pod' stays with dimension 1 of 'up': its "
                          "entry (priority 2) comes before that of dimension 0 "
                          "of 'x' (priority 3)"));
  const OpSharding resolved = Resolved(dot);
  EXPECT_EQ(resolved.results[0].dims[0].axes[0].priority, 1);
  EXPECT_EQ(resolved.results[0].dims[1].axes[0].priority, 2);
  // If B's entry comes before M's, B keeps both axes.
  shardings_[up].dims[1].SetPriority(4);
  EXPECT_EQ(Shown(dot), "[{data, pod}, {}] [{}, {}] -> [{data, pod}, {}]");
}

// Experts over the axes of the batch: the rows are gathered, and the result is
// reduced and scattered.
TEST_F(ResolveTest, AFactorThatKeepsAxesDoesSoInAnyOrderOfEntries) {
  MakeMesh({{"data", 2}});
  const int x = AddValue({8, 4}, "", "x"), w = AddValue({6, 4, 4}, "", "w");
  const int y = AddValue({8, 4}, "", "y");
  Append(x, 0, "data", 1);
  Append(w, 0, "data", 2);
  Append(y, 0, "data", 1);
  const int experts = AddOp("b e, x m e -> b m", {x, w}, {y});
  EXPECT_EQ(Shown(experts), "[{data}, {}] [{}, {}, {}] -> [{data}, {}]");
  const int factor = graph_.ops[experts].rule.operands[1][0][0];
  graph_.ops[experts].rule.factors[factor].keeps_axes = true;
  EXPECT_EQ(Shown(experts),
            "[{}, {}] [{data}, {}, {}] -> [{}, {}] unreduced={data}");
  EXPECT_THAT(Reasons(experts),
              ElementsAre("Axis 'data' stays with dimension 0 of 'w': this "
                          "operation keeps it there, although the entry of "
                          "dimension 0 of 'x' (priority 1) comes before it "
                          "(priority 2)"));
  // Axes that divide stored values only are not kept.
  graph_.storage_priority = 2;
  EXPECT_EQ(Shown(experts), "[{data}, {}] [{}, {}, {}] -> [{data}, {}]");
}

TEST_F(ResolveTest, ListsThatPartAreJudgedWhereTheyDo) {
  MakeMesh({{"a", 2}, {"b", 2}, {"c", 2}});
  const int x = AddValue({8}, "", "x"), y = AddValue({8}, "", "y");
  const int sum = AddValue({8}, "", "sum");
  Append(x, 0, "a", 0);
  Append(x, 0, "b", 2);
  Append(y, 0, "a", 0);
  Append(y, 0, "c", 1);
  const int add = AddElementwise({x, y}, sum);
  EXPECT_EQ(Shown(add), "[{a, c}] [{a, c}] -> [{a, c}]");
  EXPECT_THAT(
      Reasons(add),
      ElementsAre("Dimension 0 of 'y' is divided over a, c and "
                  "dimension 0 of 'x' over a, b: the first is kept, "
                  "its entry (priority 1) comes before the other's (priority "
                  "2)"));
}

TEST_F(ResolveTest, PartsOfAnAxisAreContestedAlone) {
  MakeMesh({{"t", 4}});
  const int q = AddValue({2, 2, 8}, "t:1:2, t:2:2, "),
            k = AddValue({2, 8}, "t, ");
  const int out = AddValue({2, 2});
  const int dot = AddOp("g r h, g h -> g r", {q, k}, {out});
  EXPECT_EQ(Shown(dot),
            "[{t:(1)2}, {t:(2)2}, {}] [{t:(1)2}, {}] -> [{t:(1)2}, {t:(2)2}]");
}

TEST_F(ResolveTest, WholeAndCompositeFactors) {
  MakeMesh({{"a", 2}, {"b", 2}});
  const int x = AddValue({8, 8, 8}, "a, b, ", "scores"),
            y = AddValue({8, 8, 8});
  const int op =
      AddOp("i j k -> i j k", {x}, {y}, {},
            {{'i', FactorKind::kWhole}, {'j', FactorKind::kDecompose}});
  graph_.ops[op].name = "softmax";
  EXPECT_EQ(Shown(op), "[{}, {}, {}] -> [{}, {}, {}]");
  EXPECT_THAT(
      Reasons(op),
      ElementsAre("Dimension 0 of 'scores' is divided over a, and 'softmax' "
                  "needs it whole",
                  "Dimension 1 of 'scores' is divided over b, and 'softmax' "
                  "needs it whole until decomposed"));
  EXPECT_THAT(AxesNeedingDecomposition(graph_, op, shardings_),
              ElementsAre(Ref("b")));
}

TEST_F(ResolveTest, NoDecompositionForAnAxisInUse) {
  MakeMesh({{"a", 2}});
  const int x = AddValue({8, 8}, "?, a?", "", 1), bias = AddValue({8}, "a?");
  const int y = AddValue({8, 8}, ", a");
  const int op = AddOp("i j, i -> i j", {x, bias}, {y}, {},
                       {{'j', FactorKind::kDecompose}});
  EXPECT_THAT(AxesNeedingDecomposition(graph_, op, shardings_), IsEmpty());
  shardings_[bias] = Replicated(1);
  EXPECT_THAT(AxesNeedingDecomposition(graph_, op, shardings_),
              ElementsAre(Ref("a")));
  // A result alone is sliced.
  shardings_[x] = Replicated(2);
  EXPECT_THAT(AxesNeedingDecomposition(graph_, op, shardings_), IsEmpty());
  EXPECT_THAT(Resolved(op).conflicts, IsEmpty());
}

TEST_F(ResolveTest, BlocksOfTheEarlierEntry) {
  MakeMesh({{"a", 3}});
  const int x = AddValue({8}, "a", "", 1), y = AddValue({8}, "a", "", 0);
  const int out = AddValue({8}, "a", "", 1);
  shardings_[y].dims[0].block = 4;
  const int add = AddElementwise({x, y}, out);
  EXPECT_EQ(Shown(add), "[{a}|4] [{a}|4] -> [{a}|4]");
  shardings_[y].dims[0].SetPriority(1);  // then the result's
  EXPECT_EQ(Shown(add), "[{a}] [{a}] -> [{a}]");
}

// For any annotations: no axis occurs twice in a value or an operation, later
// calls only add axes, and every operand and result holds its factors exactly.
TEST_F(ResolveTest, RandomGraphsKeepTheRules) {
  const std::vector<std::string> rules = {
      "i j -> i j", "i j, j k -> i k",  "i j, i j -> i j",
      "i j -> j i", "(i j) k -> i j k", "i j k -> (i j) k",
      "i j -> i",   "i j k -> i (j k)", "i, i j -> i j"};
  std::mt19937 random(7);
  const auto pick = [&random](size_t n) { return random() % n; };
  int divided = 0;
  for (int trial = 0; trial < 300; ++trial) {
    graph_ = Graph();
    shardings_.clear();
    MakeMesh({{"a", 2}, {"b", 4}, {"c", 3}});
    std::map<char, int64_t> sizes;
    for (char c : {'i', 'j', 'k'}) sizes[c] = 1 + pick(12);
    // Values by the factors of their dimensions, so that rules share values.
    std::map<std::string, std::vector<int>> values;
    const auto value_for = [&](const std::string& dims, bool fresh) {
      std::vector<int>& made = values[dims];
      if (!fresh && !made.empty() && pick(3) > 0)
        return made[pick(made.size())];
      std::vector<int64_t> shape;
      bool merged = false;
      for (char c : dims) {
        if (c == '(') shape.push_back(1);
        merged = (merged || c == '(') && c != ')';
        if (c < 'i' || c > 'k') continue;
        if (merged)
          shape.back() *= sizes[c];
        else
          shape.push_back(sizes[c]);
      }
      made.push_back(AddValue(shape));
      return made.back();
    };
    for (int op = 0; op < 8; ++op) {
      const std::string& rule = rules[pick(rules.size())];
      const size_t arrow = rule.find(" -> ");
      std::stringstream list(rule.substr(0, arrow));
      std::vector<int> operands;
      for (std::string dims; std::getline(list, dims, ',');)
        operands.push_back(
            value_for(dims.substr(dims.find_first_not_of(' ')), false));
      AddOp(rule, operands, {value_for(rule.substr(arrow + 4), true)}, sizes);
    }
    for (int seed = 0; seed < 6; ++seed) {
      const int value = static_cast<int>(pick(shardings_.size()));
      Seed(value, static_cast<int>(pick(shardings_[value].dims.size())),
           std::string(1, static_cast<char>('a' + pick(3))),
           static_cast<int>(pick(3)));
    }
    for (int priority = 0; priority < 3; ++priority) {
      const std::vector<Sharding> before = shardings_;
      Propagate(graph_, priority, shardings_);
      for (size_t v = 0; v < shardings_.size(); ++v)
        for (size_t d = 0; d < shardings_[v].dims.size(); ++d)
          EXPECT_THAT(
              MatchAxes(before[v].dims[d].axes, shardings_[v].dims[d].axes)
                  .rest_a,
              IsEmpty());
    }
    const auto expect_once = [](const std::vector<DimSharding>& lists) {
      Sharding so_far;
      for (const DimSharding& list : lists)
        for (const AxisRef& ref : list.axes) {
          EXPECT_FALSE(Uses(so_far, ref));
          so_far.dims.push_back({{ref}});
        }
      return so_far.dims.size();
    };
    for (const Sharding& sharding : shardings_) expect_once(sharding.dims);
    for (size_t op = 0; op < graph_.ops.size(); ++op) {
      const OpSharding resolved = Resolved(static_cast<int>(op));
      if (expect_once(resolved.factors) > 0) ++divided;
      for (const OpTensor& tensor : TensorsOf(graph_.ops[op])) {
        const TensorProjection projection =
            ProjectTensor(graph_.ops[op].rule, *tensor.factors,
                          graph_.values[tensor.value].shape,
                          tensor.is_result ? resolved.results[tensor.index]
                                           : resolved.operands[tensor.index]);
        for (size_t f = 0; f < projection.factors.size(); ++f) {
          const int d = projection.dims[f];
          // Among several factors of size 1, the divided one is unobservable.
          if (d < 0 || graph_.values[tensor.value].shape[d] == 1) continue;
          EXPECT_TRUE(projection.factors[f].exact);
          EXPECT_TRUE(
              MatchAxes(projection.factors[f].axes, resolved.factors[f].axes)
                  .Same())
              << ToString(graph_.ops[op].rule) << " "
              << Shown(static_cast<int>(op));
          EXPECT_EQ(projection.factors[f].block, resolved.factors[f].block);
        }
      }
    }
  }
  EXPECT_GT(divided, 1000);
}

}  // namespace
}  // namespace partita::core
