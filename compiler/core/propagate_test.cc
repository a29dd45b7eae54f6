// Known answers of propagation and of resolving an operation. The A cases are
// inputs and outcomes of Shardy's propagation tests (openxla/shardy,
// shardy/dialect/sdy/transforms/propagation/test), restated.
#include "compiler/core/propagate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <sstream>

namespace partita::core {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Builds graphs from einsum-like text and shardings from their printed form.
class PropagateTest : public ::testing::Test {
 protected:
  void MakeMesh(std::vector<Axis> axes) { graph_.mesh.axes = std::move(axes); }

  int AddValue(std::vector<int64_t> shape, const std::string& text = "",
               const std::string& name = "", int priority = 0) {
    graph_.values.push_back({shape, 4, name});
    shardings_.push_back(Replicated(static_cast<int>(shape.size())));
    const int value = static_cast<int>(graph_.values.size()) - 1;
    if (!text.empty()) Annotate(value, text, priority);
    return value;
  }

  // "a b, , c?": axes by dimension; a trailing ? leaves a dimension open, and
  // "a:1:2" is the part a:(1)2.
  void Annotate(int value, const std::string& text, int priority = 0) {
    std::stringstream dims(text + ",");
    std::string dim;
    for (size_t d = 0; std::getline(dims, dim, ','); ++d) {
      DimSharding& to = shardings_[value].dims.at(d);
      to.open = dim.find('?') != std::string::npos;
      if (to.open) dim.erase(dim.find('?'));
      std::stringstream axes(dim);
      for (std::string axis; axes >> axis;) {
        to.axes.push_back(Ref(axis));
        to.priority = priority;
      }
    }
  }

  AxisRef Ref(const std::string& text) const {
    const size_t colon = text.find(':');
    AxisRef ref =
        WholeAxis(graph_.mesh, graph_.mesh.Find(text.substr(0, colon)));
    if (colon == std::string::npos) return ref;
    const size_t second = text.find(':', colon + 1);
    ref.pre = std::stoll(text.substr(colon + 1, second - colon - 1));
    ref.size = std::stoll(text.substr(second + 1));
    return ref;
  }

  // rule "i k, k j -> i j": a dimension of several factors is "(i j)", of none
  // "1". Sizes come from the values, of merged factors from `sizes`.
  int AddOp(const std::string& rule, std::vector<int> operands,
            std::vector<int> results, std::map<char, int64_t> sizes = {},
            std::map<char, FactorKind> kinds = {}) {
    Op op;
    op.operands = std::move(operands);
    op.results = std::move(results);
    const size_t arrow = rule.find("->");
    std::map<char, int> factors;
    Parse(rule.substr(0, arrow), op.operands, sizes, factors, op.rule,
          op.rule.operands);
    Parse(rule.substr(arrow + 2), op.results, sizes, factors, op.rule,
          op.rule.results);
    for (const auto& [name, factor] : factors) {
      if (kinds.count(name))
        op.rule.factors[factor].kind = kinds[name];
      else if (rule.find(name, arrow) == std::string::npos)
        op.rule.factors[factor].kind = FactorKind::kReduced;
    }
    graph_.ops.push_back(std::move(op));
    return static_cast<int>(graph_.ops.size()) - 1;
  }

  // An elementwise operation on values of one shape.
  int AddElementwise(std::vector<int> operands, int result) {
    std::string dims, rule;
    for (size_t d = 0; d < graph_.values[result].shape.size(); ++d)
      dims += std::string(1, static_cast<char>('i' + d)) + " ";
    for (size_t i = 0; i < operands.size(); ++i)
      rule += (i > 0 ? ", " : "") + dims;
    const int op = AddOp(rule + "->" + dims, std::move(operands), {result});
    graph_.ops[op].round = 0;
    return op;
  }

  void Run(int priority = 0) {
    for (int p = 0; p <= priority; ++p) Propagate(graph_, p, shardings_);
  }

  // Without marks of openness.
  std::string Text(Sharding sharding) const {
    for (DimSharding& dim : sharding.dims) dim.open = false;
    return ToString(graph_.mesh, sharding);
  }
  std::string Text(int value) const { return Text(shardings_[value]); }

  Graph graph_;
  std::vector<Sharding> shardings_;

 private:
  void Parse(const std::string& text, const std::vector<int>& values,
             const std::map<char, int64_t>& sizes, std::map<char, int>& factors,
             Rule& rule, std::vector<TensorFactors>& tensors) {
    std::stringstream list(text + ",");
    std::string tensor;
    for (size_t t = 0; t < values.size() && std::getline(list, tensor, ',');
         ++t) {
      TensorFactors dims;
      bool merged = false;
      for (char c : tensor) {
        if (c == '(') {
          merged = true;
          dims.emplace_back();
        } else if (c == ')') {
          merged = false;
        } else if (c == '1') {
          dims.emplace_back();
        } else if (c != ' ') {
          if (!merged) dims.emplace_back();
          if (factors.count(c) == 0) {
            factors[c] = static_cast<int>(rule.factors.size());
            rule.factors.push_back({});
          }
          Factor& factor = rule.factors[factors[c]];
          if (sizes.count(c) > 0)
            factor.size = sizes.at(c);
          else if (!merged)
            factor.size = graph_.values[values[t]].shape[dims.size() - 1];
          dims.back().push_back(factors[c]);
        }
      }
      tensors.push_back(std::move(dims));
    }
  }
};

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
  EXPECT_EQ(resolved.conflicts[0].reason,
            "dimension 0 of result 0 holds a part of 4 rows behind another "
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
  EXPECT_EQ(resolved.conflicts[0].reason,
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
  shardings_[arg0].dims[1] = {{Ref("b")}, 0, true, 4};
  const int arg1 = AddValue({8, 8}), add1 = AddValue({8, 8});
  const int add2 = AddValue({8, 8}, "?, c?", "", 1);
  AddElementwise({arg0, arg1}, add1);
  AddElementwise({add1, add1}, add2);
  Run(4);
  EXPECT_EQ(Text(arg0), "[{a}, {b}]");
  EXPECT_EQ(Text(arg1), "[{a}, {c}]");
  EXPECT_EQ(Text(add1), "[{a}, {c}]");
  EXPECT_EQ(shardings_[add1].dims[0].priority, 0);
  EXPECT_EQ(shardings_[add1].dims[1].priority, 1);
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

}  // namespace
}  // namespace partita::core
