// Tests of sharding rules as text: rules of operations, rules of users, and
// refusals.
#include "dialects/nn/sharding_rule.h"

#include "dialects/nn/dialect.h"
#include "dialects/nn/interpreter_fixture.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Diagnostics.h"

namespace partita::nn {
namespace {

class ShardingRuleTest : public InterpreterFixture {
 protected:
  // The rule of the operation in the function's only line.
  std::string ruleOf(const std::string& arguments, const std::string& line) {
    auto module =
        parse("func.func @f(" + arguments + ") {\n" + line + "\nreturn\n}");
    if (!module) return "";
    const auto rule =
        shardingRuleOf(&functionNamed(*module, "f").front().front());
    return rule ? ToString(*rule) : "none";
  }

  std::string reshape(const std::string& from, const std::string& to) {
    return ruleOf("%x: tensor<" + from + "xf32>",
                  "%y = nn.reshape %x : tensor<" + from + "xf32> -> tensor<" +
                      to + "xf32>");
  }
};

TEST_F(ShardingRuleTest, ContractionReducesWhatItContracts) {
  EXPECT_EQ(ruleOf("%x: tensor<2x3x5xf32>, %w: tensor<2x5x7xf32>",
                   "%y = nn.dot_general %x, %w batch = [0] x [0] contract = "
                   "[2] x [1] : tensor<2x3x5xf32>, tensor<2x5x7xf32> -> "
                   "tensor<2x3x7xf32>"),
            "([i, j, l], [i, l, k]) -> ([i, j, k]) {i=2, j=3, k=7, l=5} "
            "reduced={l} multilinear={0, 1}");
}

TEST_F(ShardingRuleTest, ReshapeSplitsIntoCommonFactors) {
  EXPECT_EQ(reshape("4x6", "24"), "([i, j]) -> ([ij]) {i=4, j=6} linear={0}");
  EXPECT_EQ(reshape("12", "3x4"), "([ij]) -> ([i, j]) {i=3, j=4} linear={0}");
  EXPECT_EQ(reshape("2x6", "4x3"),
            "([i, jk]) -> ([ij, k]) {i=2, j=2, k=3} linear={0}");
  EXPECT_EQ(reshape("5x4x3x7", "5x6x2x7"),
            "([i, jk, m, o]) -> ([i, jl, n, o]) {i=5, j=2, k=2, l=3, m=3, n=2, "
            "o=7} whole={k, l, m, n} linear={0}");
}

TEST_F(ShardingRuleTest, ReshapePairsSizesOfOne) {
  EXPECT_EQ(reshape("1x2x6", "1x12"),
            "([i, j, k]) -> ([i, jk]) {i=1, j=2, k=6} linear={0}");
  EXPECT_EQ(reshape("6x1", "1x6"), "([i, 1]) -> ([1, i]) {i=6} linear={0}");
}

TEST_F(ShardingRuleTest, BroadcastCarriesNewDimensions) {
  EXPECT_EQ(ruleOf("%x: tensor<1x4xf32>",
                   "%y = nn.broadcast %x dims = [1, 2] : tensor<1x4xf32> -> "
                   "tensor<2x3x4xf32>"),
            "([1, k]) -> ([i, j, k]) {i=2, j=3, k=4} linear={0}");
}

TEST_F(ShardingRuleTest, AttentionDividesKeyValueHeadsFirst) {
  EXPECT_EQ(
      ruleOf("%q: tensor<2x6x5x8xf32>, %k: tensor<2x3x7x8xf32>, "
             "%v: tensor<2x3x7x4xf32>, %b: tensor<1x6x5x7xf32>",
             "%y = nn.attention %q, %k, %v, %b scale = 1.0 : "
             "(tensor<2x6x5x8xf32>, tensor<2x3x7x8xf32>, tensor<2x3x7x4xf32>, "
             "tensor<1x6x5x7xf32>) -> tensor<2x6x5x4xf32>"),
      "([i, no, j, m], [i, n, l, m], [i, n, l, k], [1, no, j, l]) -> "
      "([i, no, j, k]) {i=2, j=5, k=4, l=7, m=8, n=3, o=2} whole={l, m} "
      "linear={2}");
}

TEST_F(ShardingRuleTest, AttentionWithOneKeyValueHeadDividesQueryHeads) {
  EXPECT_EQ(
      ruleOf("%q: tensor<2x6x5x8xf32>, %k: tensor<2x1x7x8xf32>",
             "%y = nn.attention %q, %k, %k scale = 1.0 : "
             "(tensor<2x6x5x8xf32>, tensor<2x1x7x8xf32>, tensor<2x1x7x8xf32>) "
             "-> tensor<2x6x5x8xf32>"),
      "([i, n, j, m], [i, 1, l, m], [i, 1, l, k]) -> ([i, n, j, k]) "
      "{i=2, j=5, k=8, l=7, m=8, n=6} whole={l, m} linear={2}");
}

// Segments follow queries and keys; lse is no partial sum over the values'
// size.
TEST_F(ShardingRuleTest, AttentionWithMasksAndLse) {
  EXPECT_EQ(
      ruleOf("%q: tensor<2x6x5x8xf32>, %k: tensor<2x6x7x8xf32>, "
             "%s: tensor<i64>, %a: tensor<2x5xi32>, %b: tensor<2x7xi32>",
             "%y, %e = nn.attention %q, %k, %k shift(%s) segments(%a, %b) "
             "scale = 1.0 causal_offset = 0 : (tensor<2x6x5x8xf32>, "
             "tensor<2x6x7x8xf32>, tensor<2x6x7x8xf32>, tensor<i64>, "
             "tensor<2x5xi32>, tensor<2x7xi32>) -> (tensor<2x6x5x8xf32>, "
             "tensor<2x6x5xf32>)"),
      "([i, n, j, m], [i, n, l, m], [i, n, l, k], [], [i, j], [i, l]) -> "
      "([i, n, j, k], [i, n, j]) {i=2, j=5, k=8, l=7, m=8, n=6} "
      "whole={k, l, m}");
}

TEST_F(ShardingRuleTest, ExpertsAndTheirWidthAreReduced) {
  EXPECT_EQ(
      ruleOf("%x: tensor<2x3x4xf32>, %i: tensor<2x3x2xi64>, %p: "
             "tensor<2x3x2xf32>, %u: tensor<5x6x4xf32>, %d: tensor<5x8x6xf32>",
             "%y = nn.experts %x[%i], %p up(%u : tensor<5x6x4xf32>) down(%d : "
             "tensor<5x8x6xf32>) activation = relu : tensor<2x3x4xf32>, "
             "tensor<2x3x2xi64>, tensor<2x3x2xf32> -> tensor<2x3x8xf32>"),
      "([i, j, n], [i, j, o], [i, j, o], [l, m, n], [l, k, m]) -> ([i, j, k]) "
      "{i=2, j=3, k=8, l=5, m=6, n=4, o=2} reduced={l, m} whole={n, o} "
      "keeps={l} linear={2}");
}

TEST_F(ShardingRuleTest, DepthwiseConvolutionCarriesChannels) {
  EXPECT_EQ(
      ruleOf("%x: tensor<2x4x8x8xf32>, %w: tensor<8x1x3x1xf32>",
             "%y = nn.conv %x, %w strides = [2, 1] dilations = [1, 1] low = "
             "[1, 0] high = [1, 0] groups = 4 : tensor<2x4x8x8xf32>, "
             "tensor<8x1x3x1xf32> -> tensor<2x8x4x8xf32>"),
      "([i, j, l, n], [jk, 1, m, o]) -> ([i, jk, l, n]) {i=2, j=4, k=2, l=4, "
      "m=3, n=8, o=1} halo={l} whole={m, o} multilinear={0, 1}");
}

TEST_F(ShardingRuleTest, ElementwiseCarriesAll) {
  EXPECT_EQ(
      ruleOf("%x: tensor<2x3xf32>", "%y = arith.addf %x, %x : tensor<2x3xf32>"),
      "([i, j], [i, j]) -> ([i, j]) {i=2, j=3} linear={0, 1}");
  EXPECT_EQ(ruleOf("", "%y = arith.constant dense<1.0> : tensor<3xf32>"),
            "() -> ([i]) {i=3}");
}

TEST_F(ShardingRuleTest, OfTheUserOutranksTheOperations) {
  const std::string rule =
      "([i, 1], [k, jl]) -> ([i, jl]) {i=2, j=3, k=1, l=3} reduced={k:max} "
      "whole={l} keeps={k} linear={0} multilinear={1}";
  EXPECT_EQ(ruleOf("%x: tensor<2x1xf32>, %w: tensor<1x9xf32>",
                   "%y = nn.dot_general %x, %w contract = [1] x [0] {nn.rule = "
                   "#nn.rule<" +
                       rule +
                       ">} : tensor<2x1xf32>, tensor<1x9xf32> -> "
                       "tensor<2x9xf32>"),
            rule);
}

TEST_F(ShardingRuleTest, RefusesWhatDoesNotFit) {
  std::string message;
  mlir::ScopedDiagnosticHandler handler(&context_,
                                        [&](mlir::Diagnostic& diagnostic) {
                                          if (message.empty())
                                            message = diagnostic.str();
                                          return mlir::success();
                                        });
  const auto refuse = [&](const std::string& rule) {
    message.clear();
    mlir::parseAttribute("#nn.rule<" + rule + ">", &context_);
    return message;
  };
  EXPECT_EQ(refuse("([i, k]) -> ([i]) {i=4}"),
            "expected a size of factor k, found none");
  EXPECT_EQ(refuse("([i, k]) -> ([i]) {i=4, k=2}"),
            "expected factor j, which is carried, in a result, found it in "
            "operands only: it is 'reduced' or 'whole'");
  EXPECT_EQ(refuse("([i]) -> ([i]) {i=4} reduced={i}"),
            "expected the reduced factor i in operands only, found it in a "
            "result");
  EXPECT_EQ(refuse("([i, i]) -> ([i]) {i=4}"),
            "expected each factor once in operand 0, found i twice");
  EXPECT_EQ(refuse("([i]) -> ([i]) {i=4, i=5}"),
            "expected one size of factor i, found two");
  EXPECT_EQ(refuse("([i]) -> ([i]) {i=4} wholly={i}"),
            "expected reduced, halo, reduced_halo, whole, decompose, keeps, "
            "linear or multilinear, "
            "found wholly");
  EXPECT_EQ(refuse("([i]) -> () {i=4} reduced={i:mean}"),
            "expected sum, prod, max, min, any or all, found mean");
  EXPECT_EQ(refuse("([3]) -> () {}"),
            "expected the factors of a dimension, or 1 where there are none, "
            "found 3");
  EXPECT_EQ(refuse("([i]) -> ([i]) {i=4} linear={1}"),
            "expected 'linear' and 'multilinear' to name operands, of which "
            "there are 1, found 1");
}

}  // namespace
}  // namespace partita::nn
