// How single operations are computed: transformer layers, conflicts, partial
// sums. B cases are inputs of Shardy's export tests (openxla/shardy,
// shardy/dialect/sdy/transforms/export/test) and of MLIR's shard dialect; D
// cases of tests of Alpa and AutoParallel.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

#include "compiler/core/conflict.h"
#include "compiler/core/projection.h"
#include "compiler/core/propagate.h"
#include "compiler/core/reshard.h"
#include "compiler/core/test_graph.h"

namespace partita::core {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class ResolveTest : public GraphTest {
 protected:
  OpSharding Resolved(int op) { return Resolve(graph_, op, shardings_); }

  // "operands -> results".
  std::string Shown(int op) {
    const OpSharding resolved = Resolved(op);
    std::string text;
    for (const Sharding& sharding : resolved.operands)
      text += (text.empty() ? "" : " ") + Text(sharding);
    text += " ->";
    for (const Sharding& sharding : resolved.results)
      text += " " + Text(sharding);
    return text;
  }

  std::vector<std::string> Reasons(int op) {
    std::vector<std::string> reasons;
    for (const Conflict& conflict : Resolved(op).conflicts)
      reasons.push_back(Describe(graph_, conflict));
    return reasons;
  }

  // Collectives by kind that bring its operands to where it computes, and its
  // results to where they lie.
  using Counts = std::map<std::string, int>;
  Counts Moves(int op) {
    Counts moves;
    const OpSharding resolved = Resolved(op);
    const auto move = [&](int value, const Sharding& from, const Sharding& to) {
      const ReshardPlan plan =
          PlanReshard(graph_.mesh, graph_.values[value].shape, 4, from, to);
      for (const Collective& step : plan.steps) ++moves[ToString(step.kind)];
    };
    const Op& plain = graph_.ops[op];
    for (size_t i = 0; i < plain.operands.size(); ++i)
      move(plain.operands[i], shardings_[plain.operands[i]],
           resolved.operands[i]);
    for (size_t i = 0; i < plain.results.size(); ++i)
      move(plain.results[i], resolved.results[i], shardings_[plain.results[i]]);
    return moves;
  }

  // Puts an axis on a dimension as an entry of a plan does.
  void Seed(int value, int dim, const std::string& axis, int priority) {
    if (Uses(shardings_[value], Ref(axis))) return;
    shardings_[value].dims[dim] = {{Ref(axis)}, 0, true};
    shardings_[value].dims[dim].SetPriority(priority);
  }

  // x[B, L, E] -> normalized -> up -> gelu -> down -> + x.
  struct Layer {
    int x, norm, up, h, gelu, down, y, sum;
    int up_op, down_op, sum_op;
  };
  Layer AddLayer() {
    Layer layer;
    layer.x = AddValue({4, 8, 16}, "", "x");
    layer.norm = AddValue({4, 8, 16}, "", "norm");
    layer.up = AddValue({16, 32}, "", "up.weight");
    layer.h = AddValue({4, 8, 32}, "", "h");
    layer.gelu = AddValue({4, 8, 32}, "", "gelu");
    layer.down = AddValue({32, 16}, "", "down.weight");
    layer.y = AddValue({4, 8, 16}, "", "y");
    layer.sum = AddValue({4, 8, 16}, "", "sum");
    AddOp("b l e -> b l e", {layer.x}, {layer.norm}, {},
          {{'e', FactorKind::kDecompose}});
    layer.up_op =
        AddOp("b l e, e m -> b l m", {layer.norm, layer.up}, {layer.h});
    AddElementwise({layer.h}, layer.gelu);
    layer.down_op =
        AddOp("b l m, m e -> b l e", {layer.gelu, layer.down}, {layer.y});
    layer.sum_op = AddElementwise({layer.x, layer.y}, layer.sum);
    return layer;
  }
};

TEST_F(ResolveTest, MegatronLayer) {
  MakeMesh({{"data", 2}, {"tensor", 2}});
  const Layer layer = AddLayer();
  Seed(layer.x, 0, "data", 0);
  Propagate(graph_, 0, shardings_);
  Seed(layer.up, 1, "tensor", 1);
  Propagate(graph_, 1, shardings_);
  EXPECT_EQ(Text(layer.h), "[{data}, {}, {tensor}]");
  EXPECT_EQ(Text(layer.down), "[{tensor}, {}]");
  EXPECT_EQ(Text(layer.sum), "[{data}, {}, {}]");
  EXPECT_EQ(Shown(layer.up_op),
            "[{data}, {}, {}] [{}, {tensor}] -> [{data}, {}, {tensor}]");
  EXPECT_EQ(Shown(layer.down_op),
            "[{data}, {}, {tensor}] [{tensor}, {}] -> [{data}, {}, {}] "
            "unreduced={tensor}");
  for (size_t op = 0; op < graph_.ops.size(); ++op)
    EXPECT_THAT(Reasons(static_cast<int>(op)), IsEmpty());
}

// L on the same axis at a later entry: a gather where the width needs the axis,
// a reduction straight into L after it.
TEST_F(ResolveTest, SequenceParallelLayer) {
  MakeMesh({{"data", 2}, {"tensor", 2}});
  const Layer layer = AddLayer();
  Seed(layer.x, 0, "data", 0);
  Propagate(graph_, 0, shardings_);
  Seed(layer.up, 1, "tensor", 1);
  Propagate(graph_, 1, shardings_);
  for (int value : {layer.x, layer.norm, layer.h, layer.gelu, layer.y})
    Seed(value, 1, "tensor", 2);
  Propagate(graph_, 2, shardings_);
  EXPECT_EQ(Text(layer.norm), "[{data}, {tensor}, {}]");
  EXPECT_EQ(Text(layer.h), "[{data}, {}, {tensor}]");
  EXPECT_EQ(Text(layer.sum), "[{data}, {tensor}, {}]");
  EXPECT_EQ(Shown(layer.up_op),
            "[{data}, {}, {}] [{}, {tensor}] -> [{data}, {}, {tensor}]");
  EXPECT_EQ(Shown(layer.down_op),
            "[{data}, {}, {tensor}] [{tensor}, {}] -> [{data}, {}, {}] "
            "unreduced={tensor}");
  EXPECT_EQ(Shown(layer.sum_op),
            "[{data}, {tensor}, {}] [{data}, {tensor}, {}] -> "
            "[{data}, {tensor}, {}]");
  EXPECT_THAT(Reasons(layer.up_op),
              ElementsAre("Axis 'tensor' stays with dimension 1 of "
                          "'up.weight': its entry (priority 1) comes before "
                          "that of dimension 1 of 'norm' (priority 2)"));
  EXPECT_THAT(Reasons(layer.down_op),
              ElementsAre("Axis 'tensor' stays with dimension 2 of 'gelu': its "
                          "entry (priority 1) comes before that of dimension 1 "
                          "of 'y' (priority 2)"));
}

// Weights over the axis of B too, as under ZeRO: gathered where B uses it.
TEST_F(ResolveTest, WeightsOverTheBatchAxisAreGathered) {
  MakeMesh({{"data", 2}, {"tensor", 2}});
  const Layer layer = AddLayer();
  Seed(layer.x, 0, "data", 0);
  Propagate(graph_, 0, shardings_);
  Seed(layer.up, 1, "tensor", 1);
  Propagate(graph_, 1, shardings_);
  Seed(layer.up, 0, "data", 2);
  Seed(layer.down, 1, "data", 2);
  Propagate(graph_, 2, shardings_);
  EXPECT_EQ(Text(layer.x), "[{data}, {}, {}]");
  EXPECT_EQ(Shown(layer.up_op),
            "[{data}, {}, {}] [{}, {tensor}] -> [{data}, {}, {tensor}]");
  EXPECT_EQ(Shown(layer.down_op),
            "[{data}, {}, {tensor}] [{tensor}, {}] -> [{data}, {}, {}] "
            "unreduced={tensor}");
}

// D9, AutoParallel's tests/test_optimize_placement.py on 32 x 8 devices: images
// or sequences over the first axis, widths over the second, parameters over
// both. (S0, S0) of the first weight, stored as outputs x inputs, is here
// tensor first: what is gathered over data lies then in one piece.
TEST_F(ResolveTest, D9FeedForwardOnTwoAxes) {
  MakeMesh({{"data", 32}, {"tensor", 8}});
  const int x = AddValue({8192, 1024}), up = AddValue({4096, 1024});
  const int h = AddValue({8192, 4096}), down = AddValue({1024, 4096});
  const int y = AddValue({8192, 1024});
  const int mm1 = AddOp("b e, m e -> b m", {x, up}, {h});
  const int mm2 = AddOp("b m, e m -> b e", {h, down}, {y});
  Append(x, 0, "data", 0);
  Run(0);
  Append(up, 0, "tensor", 1);
  Run(1);
  Append(up, 0, "data", 2);
  Append(down, 0, "data", 2);
  Run(2);
  EXPECT_EQ(Text(up), "[{tensor, data}, {}]");
  EXPECT_EQ(Text(down), "[{data}, {tensor}]");
  EXPECT_EQ(Shown(mm1), "[{data}, {}] [{tensor}, {}] -> [{data}, {tensor}]");
  EXPECT_EQ(Shown(mm2),
            "[{data}, {tensor}] [{}, {tensor}] -> [{data}, {}] "
            "unreduced={tensor}");
  // Weights are gathered, activations stay.
  EXPECT_EQ(Moves(mm1), (Counts{{"all_gather", 1}}));
  EXPECT_EQ(Moves(mm2), (Counts{{"all_gather", 1}, {"all_reduce", 1}}));
}

TEST_F(ResolveTest, D9AttentionOnTwoAxes) {
  MakeMesh({{"data", 32}, {"tensor", 8}});
  const int q = AddValue({256, 48, 256, 128}),
            k = AddValue({256, 48, 256, 128});
  const int v = AddValue({256, 48, 256, 128}),
            o = AddValue({256, 48, 256, 128});
  const int attention =
      AddOp("b n l h, b n k h, b n k v -> b n l v", {q, k, v}, {o}, {},
            {{'k', FactorKind::kWhole}, {'h', FactorKind::kWhole}});
  Append(q, 0, "data", 0);
  Run(0);
  Append(q, 1, "tensor", 1);
  Run(1);
  const std::string both = "[{data}, {tensor}, {}, {}]";
  EXPECT_EQ(Shown(attention), both + " " + both + " " + both + " -> " + both);
  EXPECT_EQ(Moves(attention), Counts());
}

// D5, Alpa's tests/shard_parallel/test_moe.py: 64 sequences of 16 tokens, 16
// experts, four devices. Tokens go to the devices of their experts and come
// back, and their gradients do: four all-to-alls. The entry of B comes first,
// but what experts take and give is placed by that of X. Experts' gradients are
// whole where they arise; the gate's, as attention's weights', are partial
// sums, which one bucket reduces.
TEST_F(ResolveTest, D5ExpertsExchangeTokensFourTimes) {
  MakeMesh({{"d", 4}});
  const int64_t g = 64, s = 16, e = 64, x = 16, c = 2, f = 256;
  const int tokens = AddValue({g, s, e}, "d, ,"), gate = AddValue({e, x}, " ,");
  const int scores = AddValue({g, s, x}, "d, ,");
  const int mask = AddValue({g, s, x, c}, "d, , ,");
  const int up = AddValue({x, e, f}, "d, ,", "", 1),
            down = AddValue({x, f, e}, "d, ,", "", 1);
  const int sent = AddValue({x, g, c, e}, "d, , ,", "", 1);
  const int inner = AddValue({x, g, c, f}, "d, , ,", "", 1);
  const int back = AddValue({x, g, c, e}, "d, , ,", "", 1);
  const int out = AddValue({g, s, e}, "d, ,");
  // Gradients lie as what they are of, where nothing else is said.
  const int of_out = AddValue({g, s, e}, "d, ,");
  const int of_back = AddValue({x, g, c, e}, "d, , ,", "", 1);
  const int of_inner = AddValue({x, g, c, f}, "d, , ,", "", 1);
  const int of_sent = AddValue({x, g, c, e}, "d, , ,", "", 1);
  const int of_tokens = AddValue({g, s, e}, "d, ,");
  const int of_down = AddValue({x, f, e}, "d, ,", "", 1);
  const int of_up = AddValue({x, e, f}, "d, ,", "", 1);
  const int of_scores = AddValue({g, s, x}, "d, ,");
  const int of_gate = AddValue({e, x}, " ,");
  AddOp("g s e, e x -> g s x", {tokens, gate}, {scores});
  AddOp("g s x c, g s e -> x g c e", {mask, tokens}, {sent});
  AddOp("x g c e, x e f -> x g c f", {sent, up}, {inner});
  AddOp("x g c f, x f e -> x g c e", {inner, down}, {back});
  AddOp("g s x c, x g c e -> g s e", {mask, back}, {out});
  AddOp("g s x c, g s e -> x g c e", {mask, of_out}, {of_back});
  AddOp("x g c e, x f e -> x g c f", {of_back, down}, {of_inner});
  AddOp("x g c f, x g c e -> x f e", {inner, of_back}, {of_down});
  AddOp("x g c f, x e f -> x g c e", {of_inner, up}, {of_sent});
  AddOp("x g c e, x g c f -> x e f", {sent, of_inner}, {of_up});
  AddOp("g s x c, x g c e -> g s e", {mask, of_sent}, {of_tokens});
  const int gate_op =
      AddOp("g s e, g s x -> e x", {tokens, of_scores}, {of_gate});
  Counts moves;
  for (size_t op = 0; op < graph_.ops.size(); ++op)
    for (const auto& [kind, times] : Moves(static_cast<int>(op)))
      moves[kind] += times;
  EXPECT_EQ(moves, (Counts{{"all_reduce", 1}, {"all_to_all", 4}}));
  EXPECT_EQ(Shown(gate_op),
            "[{d}, {}, {}] [{d}, {}, {}] -> [{}, {}] unreduced={d}");
}

TEST_F(ResolveTest, ContractionKeepsTheAxisOfItsResult) {  // B8
  MakeMesh({{"x", 4}, {"y", 2}});
  const int lhs = AddValue({8, 32}, "x, y"), rhs = AddValue({32, 16}, "y, ");
  const int out = AddValue({8, 16}, "x, y");
  const int dot = AddOp("i k, k j -> i j", {lhs, rhs}, {out});
  // Unreduced over y, annotated with y on its columns: a reduce-scatter, where
  // Shardy reduces all and slices.
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
  // Divided over x at its result, still after the addition.
  Annotate(out, "x");
  EXPECT_EQ(Shown(add),
            "[{}] unreduced={x} [{}] unreduced={x} -> [{}] "
            "unreduced={x}");
  // Not where one summand is whole.
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

// When the longer list loses its first axis, what others wish comes to bear.
TEST_F(ResolveTest, LoserFallsBackOnOtherWishes) {
  MakeMesh({{"data", 2}, {"t", 2}});
  const int x = AddValue({8, 8}, "data?, ?"),
            w = AddValue({8, 8}, "?, data t?", "", 1);
  const int y = AddValue({8, 8}, "data?, t?", "", 1);
  shardings_[y].dims[0].SetPriority(0);
  const int dot = AddOp("i k, k j -> i j", {x, w}, {y});
  EXPECT_EQ(Shown(dot), "[{data}, {}] [{}, {t}] -> [{data}, {t}]");
}

// B over data before, and over pod after what M wants.
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
  // Before M's entry, B keeps both.
  shardings_[up].dims[1].SetPriority(4);
  EXPECT_EQ(Shown(dot), "[{data, pod}, {}] [{}, {}] -> [{data, pod}, {}]");
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
  EXPECT_THAT(WantsDecomposition(graph_, op, shardings_),
              ElementsAre(Ref("b")));
}

TEST_F(ResolveTest, NoDecompositionForAnAxisInUse) {
  MakeMesh({{"a", 2}});
  const int x = AddValue({8, 8}, "?, a?", "", 1), bias = AddValue({8}, "a?");
  const int y = AddValue({8, 8}, ", a");
  const int op = AddOp("i j, i -> i j", {x, bias}, {y}, {},
                       {{'j', FactorKind::kDecompose}});
  EXPECT_THAT(WantsDecomposition(graph_, op, shardings_), IsEmpty());
  shardings_[bias] = Replicated(1);
  EXPECT_THAT(WantsDecomposition(graph_, op, shardings_),
              ElementsAre(Ref("a")));
  // A result alone is a slice.
  shardings_[x] = Replicated(2);
  EXPECT_THAT(WantsDecomposition(graph_, op, shardings_), IsEmpty());
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

// Whatever was annotated: no axis twice in a value or in an operation, later
// calls only add, and every operand and result holds its factors exactly.
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
    // Values by the factors of their dimensions, so that rules can meet.
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
          // Which of several factors of one row is divided does not show.
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
