// Known answers of propagation and of resolving an operation. The A cases are
// inputs and outcomes of Shardy's propagation tests (openxla/shardy,
// shardy/dialect/sdy/transforms/propagation/test), restated.
#include "compiler/core/propagate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "compiler/core/conflict.h"
#include "compiler/core/test_graph.h"

namespace partita::core {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

using PropagateTest = GraphTest;

TEST_F(PropagateTest, SimpleChain) {  // A1
  MakeMesh({{"a", 2}, {"b", 2}});
  const int arg0 = AddValue({8, 8}, "a, b"), arg1 = AddValue({8, 8});
  const int arg2 = AddValue({8, 16});
  const int add = AddValue({8, 8}), dot = AddValue({8, 16});
  AddElementwise({arg0, arg1}, add);
  AddOp("i k, k j -> i j", {add, arg2}, {dot});
  Run();
  EXPECT_EQ(Text(arg1), "[{a}, {b}]");
  EXPECT_EQ(Text(add), "[{a}, {b}]");
  EXPECT_EQ(Text(arg2), "[{b}, {}]");
  EXPECT_EQ(Text(dot), "[{a}, {}]");
  const OpSharding resolved = Resolve(graph_, 1, shardings_);
  EXPECT_EQ(Text(resolved.results[0]), "[{a}, {}] unreduced={b}");
  EXPECT_THAT(resolved.conflicts, IsEmpty());
}

TEST_F(PropagateTest, ClosedDimTakesNothing) {  // A2
  MakeMesh({{"a", 2}, {"b", 2}});
  const int lhs = AddValue({8, 8}, "a, "), rhs = AddValue({8, 8}, ", b");
  const int dot = AddValue({8, 8}, ", ?");
  AddOp("i k, k j -> i j", {lhs, rhs}, {dot});
  Run();
  EXPECT_EQ(Text(dot), "[{}, {b}]");
}

TEST_F(PropagateTest, EqualsThatDisagreeShareTheirPrefix) {  // A3
  MakeMesh({{"a", 2}, {"b", 2}, {"c", 2}});
  const int x = AddValue({8, 8}, "b a, "), y = AddValue({8, 8}, "b c, ");
  const int z = AddValue({8, 8}, "a b, ");
  const int first = AddValue({8, 8}), second = AddValue({8, 8});
  AddElementwise({x, y}, first);
  AddElementwise({x, z}, second);
  Run();
  EXPECT_EQ(Text(first), "[{b}, {}]");
  EXPECT_EQ(Text(second), "[{}, {}]");
}

TEST_F(PropagateTest, ReshapeSplitsAnAxis) {  // A5
  MakeMesh({{"a", 4}});
  const int x = AddValue({8}, "a"), y = AddValue({2, 4});
  const int op = AddOp("(i j) -> i j", {x}, {y}, {{'i', 2}, {'j', 4}});
  Run();
  EXPECT_EQ(Text(y), "[{a:(1)2}, {a:(2)2}]");
  const OpSharding resolved = Resolve(graph_, op, shardings_);
  EXPECT_EQ(Text(resolved.operands[0]), "[{a}]");
  EXPECT_EQ(Text(resolved.results[0]), Text(y));
}

TEST_F(PropagateTest, ReshapeMergesWhatSingleRowsAllow) {  // A7
  MakeMesh({{"a", 2}, {"b", 2}});
  const int x = AddValue({4, 4}, "a, b"), y = AddValue({16});
  const int u = AddValue({2, 4}, "a, b"), v = AddValue({8});
  const int partial = AddOp("i j -> (i j)", {x}, {y});
  AddOp("i j -> (i j)", {u}, {v});
  Run();
  EXPECT_EQ(Text(y), "[{a}]");
  EXPECT_EQ(Text(v), "[{a, b}]");
  const OpSharding resolved = Resolve(graph_, partial, shardings_);
  EXPECT_EQ(Text(resolved.operands[0]), "[{a}, {}]");
  ASSERT_THAT(resolved.conflicts, SizeIs(1));
  EXPECT_EQ(Describe(graph_, resolved.conflicts[0]),
            "Dimension 0 of result 0 holds a part of 4 rows behind another "
            "that is not divided to single rows, so it cannot be divided over "
            "b");
}

TEST_F(PropagateTest, LargerOperandKeepsAnAxis) {  // A9
  MakeMesh({{"a", 2}, {"b", 2}, {"c", 2}});
  const int lhs = AddValue({8, 4}, "a b, ?", "x");
  const int rhs = AddValue({4, 16}, "?, a c", "w"), dot = AddValue({8, 16});
  const int op = AddOp("i k, k j -> i j", {lhs, rhs}, {dot});
  Run();
  EXPECT_EQ(Text(dot), "[{}, {a, c}]");
  const OpSharding resolved = Resolve(graph_, op, shardings_);
  EXPECT_EQ(Text(resolved.operands[0]), "[{}, {}]");
  ASSERT_THAT(resolved.conflicts, SizeIs(1));
  EXPECT_EQ(Describe(graph_, resolved.conflicts[0]),
            "Axis 'a' stays with dimension 1 of 'w': moving it would cost 768 "
            "bytes, moving dimension 0 of 'x' 128");
}

TEST_F(PropagateTest, FirstOperandKeepsAnAxisOnATie) {  // A10
  MakeMesh({{"a", 2}});
  const int x = AddValue({8, 8}, "a, ?"), y = AddValue({8, 8}, "?, a");
  const int sum = AddValue({8, 8});
  AddElementwise({x, y}, sum);
  Run();
  EXPECT_EQ(Text(sum), "[{a}, {}]");
}

TEST_F(PropagateTest, AxesOfOneDeviceAreUsedOnceToo) {
  MakeMesh({{"a", 1}, {"b", 2}});
  const int x = AddValue({8, 8}, "a, b"), y = AddValue({8, 8}, ", b a");
  const int sum = AddValue({8, 8});
  AddElementwise({x, y}, sum);
  Run();
  EXPECT_EQ(Text(x), "[{a}, {b}]");
  EXPECT_EQ(Text(sum), "[{a}, {b}]");
}

TEST_F(PropagateTest, ElementwiseFirst) {  // A11
  MakeMesh({{"a", 2}, {"b", 2}});
  const int arg0 = AddValue({8, 8}, "a?, ?"), arg1 = AddValue({8, 8});
  const int dot = AddValue({8, 8}), add1 = AddValue({8, 8});
  const int add2 = AddValue({8, 8}, "?, a?");
  AddOp("i k, k j -> i j", {arg0, arg1}, {dot});
  AddElementwise({dot, dot}, add1);
  AddElementwise({add1, add1}, add2);
  Run();
  EXPECT_EQ(Text(dot), "[{}, {a}]");
  EXPECT_EQ(Text(add1), "[{}, {a}]");
  EXPECT_EQ(Text(arg1), "[{}, {a}]");
  EXPECT_EQ(Text(arg0), "[{a}, {}]");
}

TEST_F(PropagateTest, EarlierPriorityFirst) {  // A13
  MakeMesh({{"a", 2}, {"b", 2}, {"c", 2}});
  const int arg0 = AddValue({8, 8}, "a, ?");
  shardings_[arg0].dims[1] = {{Ref("b")}, 0, true};
  shardings_[arg0].dims[1].SetPriority(4);
  const int arg1 = AddValue({8, 8}), add1 = AddValue({8, 8});
  const int add2 = AddValue({8, 8}, "?, c?", "", 1);
  AddElementwise({arg0, arg1}, add1);
  AddElementwise({add1, add1}, add2);
  Run(4);
  EXPECT_EQ(Text(arg0), "[{a}, {b}]");
  EXPECT_EQ(Text(arg1), "[{a}, {c}]");
  EXPECT_EQ(Text(add1), "[{a}, {c}]");
  EXPECT_EQ(shardings_[add1].dims[0].axes[0].priority, 0);
  EXPECT_EQ(shardings_[add1].dims[1].axes[0].priority, 1);
}

// {B: data}, {M: pod}, {B: pod}: B also gets pod where M has not taken it.
TEST_F(PropagateTest, EntriesAppendAxesToOneDimension) {
  MakeMesh({{"data", 2}, {"pod", 2}});
  const int x = AddValue({8, 16}), up = AddValue({16, 32});
  const int h = AddValue({8, 32}), y = AddValue({8, 16});
  AddOp("b e, e m -> b m", {x, up}, {h});
  AddElementwise({x}, y);
  Append(x, 0, "data", 1);
  Propagate(graph_, 1, shardings_);
  Append(up, 1, "pod", 2);
  Propagate(graph_, 2, shardings_);
  for (int value : {x, y}) Append(value, 0, "pod", 3);
  Propagate(graph_, 3, shardings_);
  EXPECT_EQ(Text(x), "[{data, pod}, {}]");
  EXPECT_EQ(Text(y), "[{data, pod}, {}]");
  EXPECT_EQ(Text(h), "[{data}, {pod}]");
  EXPECT_EQ(shardings_[x].dims[0].axes[0].priority, 1);
  EXPECT_EQ(shardings_[x].dims[0].axes[1].priority, 3);
  EXPECT_EQ(shardings_[h].dims[1].axes[0].priority, 2);
}

// An axis of a later priority waits, and so do the axes after it.
TEST_F(PropagateTest, AxesOfOneDimensionTravelInTheirRounds) {
  MakeMesh({{"a", 2}, {"b", 2}, {"c", 2}});
  const int x = AddValue({8, 8}), y = AddValue({8, 8});
  Append(x, 0, "a", 0);
  Append(x, 0, "b", 2);
  Append(x, 0, "c", 0);
  AddElementwise({x}, y);
  Propagate(graph_, 1, shardings_);
  EXPECT_EQ(Text(y), "[{a}, {}]");
  Propagate(graph_, 2, shardings_);
  EXPECT_EQ(Text(y), "[{a, b, c}, {}]");
}

// With all priorities at once, the axis of the earlier entry comes first.
TEST_F(PropagateTest, ClaimsOfSeveralPrioritiesAreTakenOneByOne) {
  MakeMesh({{"a", 2}, {"b", 2}, {"c", 2}});
  const int x = AddValue({8}), y = AddValue({8}), z = AddValue({8, 8});
  Append(x, 0, "a", 0);
  Append(x, 0, "b", 2);
  Append(y, 0, "b", 1);
  AddOp("i, j -> i j", {x, y}, {z});
  Propagate(graph_, 2, shardings_);
  EXPECT_EQ(Text(z), "[{a}, {b}]");
  // Two lists diverge: the earlier axis at that point wins.
  const int v = AddValue({8}), sum = AddValue({8});
  Append(v, 0, "a", 0);
  Append(v, 0, "c", 1);
  AddElementwise({x, v}, sum);
  Propagate(graph_, 2, shardings_);
  EXPECT_EQ(Text(sum), "[{a, c}]");
}

// Axes do not travel through operations outside of their entry's scope.
TEST_F(PropagateTest, BarredEntriesStayOut) {
  MakeMesh({{"a", 2}, {"b", 2}});
  const int x = AddValue({8, 8}), y = AddValue({8, 8}), z = AddValue({8, 8});
  const int inside = AddElementwise({x}, y), outside = AddElementwise({y}, z);
  graph_.values[x].barred = graph_.values[z].barred = {2};
  graph_.ops[outside].barred = {2};
  Append(y, 0, "a", 2);
  Append(y, 1, "b", 1);
  Propagate(graph_, 2, shardings_);
  EXPECT_EQ(Text(x), "[{}, {b}]");
  EXPECT_EQ(Text(z), "[{}, {b}]");
  EXPECT_EQ(Text(Resolve(graph_, inside, shardings_).results[0]), "[{a}, {b}]");
  const OpSharding resolved = Resolve(graph_, outside, shardings_);
  EXPECT_EQ(Text(resolved.operands[0]), "[{}, {b}]");
  EXPECT_EQ(Text(resolved.results[0]), "[{}, {b}]");
  ASSERT_EQ(resolved.conflicts.size(), 1u);
  EXPECT_EQ(Describe(graph_, resolved.conflicts[0]),
            "Dimension 0 of operand 0 is divided over a by an entry (priority "
            "2) whose scope the operation is outside of");
}

TEST_F(PropagateTest, Barriers) {  // A14
  const struct {
    Direction direction;
    const char *arg, *result;
  } cases[] = {{Direction::kBackward, "[{a, b}, {c}]", "[{a, b}, {}]"},
               {Direction::kForward, "[{a}, {c}]", "[{a, b}, {c}]"},
               {Direction::kNone, "[{a}, {c}]", "[{a, b}, {}]"},
               {Direction::kBoth, "[{a, b}, {c}]", "[{a, b}, {c}]"}};
  for (const auto& c : cases) {
    graph_ = Graph();
    shardings_.clear();
    MakeMesh({{"a", 2}, {"b", 2}, {"c", 2}});
    const int arg = AddValue({8, 8}, "a?, c?");
    const int result = AddValue({8, 8}, "a b?, ?");
    graph_.ops[AddElementwise({arg}, result)].direction = c.direction;
    Run();
    EXPECT_EQ(Text(arg), c.arg);
    EXPECT_EQ(Text(result), c.result);
  }
}

TEST_F(PropagateTest, GroupsAreShardedAlike) {  // A15
  MakeMesh({{"a", 2}, {"b", 2}, {"c", 2}});
  const int arg0 = AddValue({8, 8}, "a?, c?");
  const int arg1 = AddValue({8, 8}, "c a?, b?", "", 1);
  const int x = AddValue({8, 8}), y = AddValue({8, 8}), z = AddValue({8, 8});
  AddElementwise({arg0, arg0}, x);
  AddElementwise({arg1, arg1}, y);
  AddElementwise({x, y}, z);
  graph_.groups = {{x, y, z}};
  Run(1);
  for (int member : {x, y, z}) EXPECT_EQ(Text(member), "[{a}, {c}]");
}

// Heads stay whole: the even share of 11 columns becomes 2 heads of 8.
TEST_F(PropagateTest, UnevenHeads) {
  MakeMesh({{"t", 3}});
  const int weight = AddValue({16, 32}, "?, t?"), x = AddValue({6, 16});
  const int y = AddValue({6, 32}), heads = AddValue({6, 4, 8});
  const int dot = AddOp("l e, e n -> l n", {x, weight}, {y});
  const int split = AddOp("l (h d) -> l h d", {y}, {heads}, {{'h', 4}});
  Run();
  EXPECT_EQ(Text(heads), "[{}, {t}, {}]");
  EXPECT_EQ(Text(y), "[{}, {t}|16]");
  EXPECT_EQ(Text(weight), "[{}, {t}|16]");
  for (int op : {dot, split}) {
    const OpSharding resolved = Resolve(graph_, op, shardings_);
    EXPECT_EQ(Text(resolved.results[0]), Text(graph_.ops[op].results[0]));
    EXPECT_EQ(Text(resolved.operands[0]), Text(graph_.ops[op].operands[0]));
  }
}

TEST_F(PropagateTest, ClosedDimKeepsItsBlock) {
  MakeMesh({{"t", 3}});
  const int y = AddValue({32}, "t"), heads = AddValue({4, 8});
  const int split = AddOp("(h d) -> h d", {y}, {heads}, {{'h', 4}});
  Run();
  EXPECT_EQ(Text(y), "[{t}]");
  EXPECT_EQ(Text(heads), "[{t}, {}]");
  EXPECT_EQ(Text(Resolve(graph_, split, shardings_).operands[0]), "[{t}|16]");
}

// 7 rows of 7 over 2 are 4 + 3, flattened 28 + 21: no data moves.
TEST_F(PropagateTest, FlattenedImageKeepsItsRows) {
  MakeMesh({{"h", 2}});
  const int image = AddValue({7, 7, 5}, "h?, ?, ?");
  const int tokens = AddValue({49, 5}), out = AddValue({49, 5});
  const int back = AddValue({7, 7, 5});
  const int flatten = AddOp("i j c -> (i j) c", {image}, {tokens});
  AddElementwise({tokens}, out);
  AddOp("(i j) c -> i j c", {out}, {back}, {{'i', 7}, {'j', 7}});
  Run();
  EXPECT_EQ(Text(tokens), "[{h}|28, {}]");
  EXPECT_EQ(Text(out), "[{h}|28, {}]");
  EXPECT_EQ(Text(back), "[{h}, {}, {}]");
  const OpSharding resolved = Resolve(graph_, flatten, shardings_);
  EXPECT_EQ(Text(resolved.operands[0]), Text(image));
  EXPECT_EQ(Text(resolved.results[0]), Text(tokens));
}

// Axes travel across a halo; each tensor keeps its own even share.
TEST_F(PropagateTest, HaloCarriesAxesNotBlocks) {
  MakeMesh({{"h", 3}});
  const int image = AddValue({2, 14, 3}, "?, h?, ?");
  const int kernel = AddValue({3, 3, 8}), out = AddValue({2, 7, 8});
  const int tokens = AddValue({2, 7, 8});
  shardings_[image].dims[1].block = 6;
  const int conv = AddOp("b i c, 1 c o -> b i o", {image, kernel}, {out},
                         {{'i', 7}}, {{'i', FactorKind::kHalo}});
  AddElementwise({out}, tokens);
  Run();
  EXPECT_EQ(Text(out), "[{}, {h}, {}]");
  EXPECT_EQ(Text(tokens), "[{}, {h}, {}]");
  const OpSharding resolved = Resolve(graph_, conv, shardings_);
  EXPECT_EQ(Text(resolved.operands[0]), "[{}, {h}, {}]");
  EXPECT_EQ(Text(resolved.results[0]), "[{}, {h}, {}]");
}

TEST_F(PropagateTest, WholeAndCompositeFactorsCarryNothing) {
  MakeMesh({{"a", 2}, {"b", 2}});
  const int x = AddValue({8, 8, 8}, "a?, b?, ?"), y = AddValue({8, 8, 8});
  AddOp("i j k -> i j k", {x}, {y}, {},
        {{'i', FactorKind::kWhole}, {'j', FactorKind::kDecompose}});
  Run();
  EXPECT_EQ(Text(y), "[{}, {}, {}]");
}

TEST_F(PropagateTest, ReplicatedAndUnreducedAxesAreNotUsed) {
  MakeMesh({{"a", 2}, {"b", 2}});
  const int x = AddValue({8, 8}, "a?, b?"), y = AddValue({8, 8});
  shardings_[y].replicated = {Ref("a")};
  shardings_[y].unreduced = {Ref("b")};
  AddElementwise({x}, y);
  Run();
  EXPECT_EQ(Text(y), "[{}, {}] replicated={a} unreduced={b}");
}

// The free part of an axis is used: q has heads over t in two parts.
TEST_F(PropagateTest, PartsOfAxesUpToWhatIsTaken) {
  MakeMesh({{"t", 4}});
  const int x = AddValue({8, 8}, "t?, ?"), y = AddValue({8, 8}, "?, t:2:2?");
  AddElementwise({x}, y);
  Run();
  EXPECT_EQ(Text(y), "[{t:(1)2}, {t:(2)2}]");
}

// Group heads come first; the rest of the axis divides a group's queries.
TEST_F(PropagateTest, GroupedQueryHeads) {
  MakeMesh({{"t", 4}});
  const int wq = AddValue({16, 2, 2, 8}, "?, t:1:2?, t:2:2?, ?");
  const int wk = AddValue({16, 2, 8}), x = AddValue({6, 16});
  const int q = AddValue({6, 2, 2, 8}), k = AddValue({6, 2, 8});
  const int scores = AddValue({2, 2, 6, 6});
  AddOp("l e, e g r h -> l g r h", {x, wq}, {q});
  AddOp("l e, e g h -> l g h", {x, wk}, {k});
  const int product = AddOp("l g r h, m g h -> g r l m", {q, k}, {scores});
  Run();
  EXPECT_EQ(Text(q), "[{}, {t:(1)2}, {t:(2)2}, {}]");
  EXPECT_EQ(Text(k), "[{}, {t:(1)2}, {}]");
  EXPECT_EQ(Text(wk), "[{}, {t:(1)2}, {}]");
  EXPECT_EQ(Text(scores), "[{t:(1)2}, {t:(2)2}, {}, {}]");
  EXPECT_THAT(Resolve(graph_, product, shardings_).conflicts, IsEmpty());
}

// 5,600 operations: the run time is linear in the graph.
TEST_F(PropagateTest, LongChain) {
  MakeMesh({{"data", 4}, {"t", 8}});
  int x = AddValue({8, 64, 32}, "data?, ?, ?");
  for (int layer = 0; layer < 700; ++layer) {
    const int up = AddValue({32, 64}), down = AddValue({64, 32});
    const int h = AddValue({8, 64, 64}), y = AddValue({8, 64, 32});
    shardings_[up].dims[1] = {{Ref("t")}, 0, true};
    shardings_[up].dims[1].SetPriority(1);
    AddOp("b l e, e m -> b l m", {x, up}, {h});
    int last = h;
    for (int i = 0; i < 5; ++i) {
      const int next = AddValue({8, 64, 64});
      AddElementwise({last, i % 2 == 0 ? last : h}, next);
      last = next;
    }
    AddOp("b l m, m e -> b l e", {last, down}, {y});
    const int sum = AddValue({8, 64, 32});
    AddElementwise({x, y}, sum);
    x = sum;
  }
  const auto start = std::chrono::steady_clock::now();
  Run(1);
  for (size_t op = 0; op < graph_.ops.size(); ++op)
    EXPECT_THAT(Resolve(graph_, static_cast<int>(op), shardings_).conflicts,
                IsEmpty());
  const std::chrono::duration<double> seconds =
      std::chrono::steady_clock::now() - start;
  EXPECT_EQ(Text(x), "[{data}, {}, {}]");
  EXPECT_EQ(Text(graph_.ops[graph_.ops.size() - 2].operands[1]), "[{t}, {}]");
  EXPECT_LT(seconds.count(), 10);
  RecordProperty("milliseconds", static_cast<int>(seconds.count() * 1000));
}

}  // namespace
}  // namespace partita::core
