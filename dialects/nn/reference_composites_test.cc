// Tests of composites on inputs small enough to check by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "dialects/nn/interpreter_fixture.h"

namespace partita::nn {
namespace {

using Numbers = std::vector<double>;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

class ReferenceCompositesTest : public InterpreterFixture {};

// Uniform weights: a result is the mean of the values that a query sees.
TEST_F(ReferenceCompositesTest, AttentionSinksAndBlocks) {
  const std::string four = "tensor<1x1x4x1xf32>";
  const auto attend = [&](const std::string& attributes) {
    return evaluate(
        "%r = nn.attention %a, %a, %b scale = 1.0 " + attributes + " : (" +
            four + ", " + four + ", " + four + ") -> " + four,
        four, {tensor(four, {0, 0, 0, 0}), tensor(four, {1, 2, 4, 8})});
  };
  EXPECT_EQ(attend("causal_offset = 0 window = 1 sinks = 1"),
            (Numbers{1, 1.5, 2.5, 4.5}));
  EXPECT_EQ(attend("blocks = dense<[[[0, 1], [1, 0]]]> : tensor<1x2x2xi1> "
                   "block_size = 2"),
            (Numbers{6, 6, 1.5, 1.5}));
  EXPECT_EQ(attend("causal_offset = 0 blocks = dense<[[[1, 0, 0, 0], [0, 1, "
                   "0, 0], [1, 0, 1, 1], [0, 0, 0, 0]]]> : tensor<1x4x4xi1> "
                   "block_size = 1"),
            (Numbers{1, 2, 2.5, 0}));
}

// All scores are equal, so results are means of the visible values, and lse is
// the logarithm of their number.
TEST_F(ReferenceCompositesTest, AttentionMasks) {
  const std::string four = "tensor<1x1x4x1xf32>", segment = "tensor<1x4xi32>";
  const std::vector<Tensor> arguments = {
      tensor(four, {0, 0, 0, 0}),    tensor(four, {1, 2, 3, 4}),
      tensor("tensor<i64>", {1}),    tensor(segment, {5, 5, 9, 9}),
      tensor(segment, {5, 5, 5, 9}),
  };
  const auto attend = [&](const std::string& operands,
                          const std::string& attributes,
                          const std::string& types, bool wants_lse) {
    return evaluate(std::string(wants_lse ? "%y, %r" : "%r, %lse") +
                        " = nn.attention %a, %a, %b " + operands +
                        " scale = 1.0 " + attributes + " : (" + four + ", " +
                        four + ", " + four + types + ") -> (" + four +
                        ", tensor<1x1x4xf32>)",
                    wants_lse ? "tensor<1x1x4xf32>" : four, arguments);
  };
  const std::string window = "causal_offset = 0 window = 2";
  EXPECT_EQ(attend("", window, "", false), (Numbers{1, 1.5, 2.5, 3.5}));
  const Numbers lse = attend("", window, "", true);
  EXPECT_EQ(lse[0], 0);
  EXPECT_NEAR(lse[3], std::log(2), 1e-6);
  EXPECT_EQ(attend("shift(%c)", "causal_offset = -1 window = 3",
                   ", tensor<i64>", false),
            (Numbers{1, 1.5, 2, 3}));
  EXPECT_EQ(
      attend("segments(%d, %e)", "", ", " + segment + ", " + segment, false),
      (Numbers{2, 2, 4, 4}));
  // Query 2 sees no key.
  EXPECT_EQ(attend("segments(%d, %e)", "causal_offset = 0",
                   ", " + segment + ", " + segment, true)[2],
            -kInfinity);
}

TEST_F(ReferenceCompositesTest, SoftmaxAndNorms) {
  const Numbers softmax =
      evaluate("%r = nn.softmax %a axis = 0 : tensor<2xf64>", "tensor<2xf64>",
               {tensor("tensor<2xf64>", {0, std::log(3)})});
  EXPECT_NEAR(softmax[0], 0.25, 1e-15);
  EXPECT_NEAR(softmax[1], 0.75, 1e-15);
  EXPECT_EQ(evaluate("%r = nn.layer_norm %a scale(%b : tensor<2xf32>) bias(%c "
                     ": tensor<2xf32>) axis = 0 epsilon = 0.0 : tensor<2xf32>",
                     "tensor<2xf32>",
                     {tensor("tensor<2xf32>", {1, 5}),
                      tensor("tensor<2xf32>", {2, 3}),
                      tensor("tensor<2xf32>", {10, 20})}),
            (Numbers{8, 23}));
  EXPECT_EQ(
      evaluate("%r = nn.rms_norm %a axis = 0 epsilon = 0.0 : tensor<4xf32>",
               "tensor<4xf32>", {tensor("tensor<4xf32>", {2, -2, 2, 2})}),
      (Numbers{1, -1, 1, 1}));
  EXPECT_EQ(
      evaluate(
          "%r = nn.batch_norm %a, %b, %c, %d, %e feature = 0 epsilon = 0.0 : "
          "(tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, "
          "tensor<2xf32>) -> tensor<2xf32>",
          "tensor<2xf32>",
          {tensor("tensor<2xf32>", {5, 7}), tensor("tensor<2xf32>", {1, 10}),
           tensor("tensor<2xf32>", {0, 1}), tensor("tensor<2xf32>", {1, 2}),
           tensor("tensor<2xf32>", {4, 25})}),
      (Numbers{2, 11}));
}

TEST_F(ReferenceCompositesTest, CrossEntropyOfEvenLogits) {
  const Numbers found = evaluate(
      "%r = nn.cross_entropy %a, %b ignore_index = 1 : tensor<2x4xf32>, "
      "tensor<2xi64> -> tensor<2xf32>",
      "tensor<2xf32>",
      {tensor("tensor<2x4xf32>", Numbers(8, 5)),
       tensor("tensor<2xi64>", {3, 1})});
  EXPECT_NEAR(found[0], std::log(4), 1e-7);
  EXPECT_EQ(found[1], 0);
}

TEST_F(ReferenceCompositesTest, DequantizeReadsLowBitsFirst) {
  // 0x81 and 0xf0 as signed bytes.
  const Tensor packed = tensor("tensor<2x1xi8>", {-127, -16}),
               scale = tensor("tensor<2xf32>", {2, -0.5});
  EXPECT_EQ(evaluate("%r = nn.dequantize %a scale(%b) : (tensor<2x1xi8>, "
                     "tensor<2xf32>) -> tensor<2x2xf32>",
                     "tensor<2x2xf32>", {packed, scale}),
            (Numbers{-14, 0, 4, -3.5}));
  EXPECT_EQ(
      evaluate("%r = nn.dequantize %a scale(%b) zero(%c) : (tensor<2x1xi8>, "
               "tensor<2xf32>, tensor<2xi8>) -> tensor<2x2xf32>",
               "tensor<2x2xf32>",
               {packed, scale, tensor("tensor<2xi8>", {0, 15})}),
      (Numbers{2, 16, 7.5, 0}));
}

}  // namespace
}  // namespace partita::nn
