// Tests the references of mixtures of experts on known numbers.
#include <gtest/gtest.h>

#include "dialects/nn/dialect.h"
#include "dialects/nn/interpreter_fixture.h"

namespace partita::nn {
namespace {

using Numbers = std::vector<double>;

class ReferenceExpertsTest : public InterpreterFixture {};

TEST_F(ReferenceExpertsTest, GroupedDotTakesTheMatrixOfEachRow) {
  const Tensor x = tensor("tensor<4x2xf32>", {1, 2, 3, 4, 5, 6, 7, 8}),
               ids = tensor("tensor<4xi64>", {1, 0, 2, -1});
  EXPECT_EQ(evaluate("%r = nn.grouped_dot %a[%b], %c : tensor<4x2xf32>, "
                     "tensor<4xi64>, tensor<2x1x2xf32> -> tensor<4x1xf32>",
                     "tensor<4x1xf32>",
                     {x, ids, tensor("tensor<2x1x2xf32>", {1, 10, 2, 20})}),
            (Numbers{42, 43, 0, 0}));
  EXPECT_EQ(
      evaluate(
          "%r = nn.grouped_dot %a[%b], %c transposed : tensor<4x2xf32>, "
          "tensor<4xi64>, tensor<2x2x2xf32> -> tensor<4x2xf32>",
          "tensor<4x2xf32>",
          {x, ids, tensor("tensor<2x2x2xf32>", {1, 3, 10, 30, 2, 4, 20, 40})}),
      (Numbers{42, 84, 43, 129, 0, 0, 0, 0}));
}

TEST_F(ReferenceExpertsTest, GroupedDotWeightGradSumsTheRowsOfEachMatrix) {
  EXPECT_EQ(
      evaluate("%r = nn.grouped_dot_weight_grad %a[%b], %c : tensor<3x2xf32>, "
               "tensor<3xi64>, tensor<3x1xf32> -> tensor<2x1x2xf32>",
               "tensor<2x1x2xf32>",
               {tensor("tensor<3x2xf32>", {1, 2, 3, 4, 5, 6}),
                tensor("tensor<3xi64>", {1, 5, 1}),
                tensor("tensor<3x1xf32>", {10, 100, 1000})}),
      (Numbers{0, 0, 5010, 6020}));
}

// Expert 0 computes 10 relu(x) + 1, expert 1 computes 10 relu(2 x) + 2.
TEST_F(ReferenceExpertsTest, ExpertsSumTheChosenResults) {
  EXPECT_EQ(evaluate("%r = nn.experts %a[%b], %c up(%d : tensor<2x1x1xf32>) "
                     "down(%e : tensor<2x1x1xf32>) down_bias(%f : "
                     "tensor<2x1xf32>) activation = relu : tensor<3x1xf32>, "
                     "tensor<3x2xi64>, tensor<3x2xf32> -> tensor<3x1xf32>",
                     "tensor<3x1xf32>",
                     {tensor("tensor<3x1xf32>", {3, 4, -5}),
                      tensor("tensor<3x2xi64>", {0, 1, 1, -1, 0, 2}),
                      tensor("tensor<3x2xf32>", {1, 0.5, 0.5, 7, 2, 7}),
                      tensor("tensor<2x1x1xf32>", {1, 2}),
                      tensor("tensor<2x1x1xf32>", {10, 10}),
                      tensor("tensor<2x1xf32>", {1, 2})}),
            (Numbers{31 + 31, 41, 2}));
}

TEST_F(ReferenceExpertsTest, GatedExpertsMultiplyGateAndUp) {
  EXPECT_EQ(
      evaluate(
          "%r = nn.experts %a[%b], %c gate(%d : tensor<1x1x1xf32>) "
          "up(%e : tensor<1x1x1xf32>) down(%f : "
          "tensor<1x1x1xf32>) gate_bias(%g : tensor<1x1xf32>) "
          "activation = relu : tensor<2x1xf32>, tensor<2x1xi64>, "
          "tensor<2x1xf32> -> tensor<2x1xf32>",
          "tensor<2x1xf32>",
          {tensor("tensor<2x1xf32>", {2, -4}),
           tensor("tensor<2x1xi64>", {0, 0}), tensor("tensor<2x1xf32>", {1, 1}),
           tensor("tensor<1x1x1xf32>", {3}), tensor("tensor<1x1x1xf32>", {5}),
           tensor("tensor<1x1x1xf32>", {7}), tensor("tensor<1x1xf32>", {1})}),
      (Numbers{7 * (3 * 2 + 1) * 10, 0}));
}

// The products are rounded to bf16, so 256 + 1 is 256 before the bias.
TEST_F(ReferenceExpertsTest, ProductsAreRoundedToSixteenBits) {
  EXPECT_EQ(
      evaluate("%r = nn.experts %a[%b], %c up(%d : tensor<1x1x2xbf16>) "
               "down(%e : tensor<1x1x1xbf16>) up_bias(%f : "
               "tensor<1x1xbf16>) activation = relu : tensor<1x2xbf16>, "
               "tensor<1x1xi64>, tensor<1x1xbf16> -> tensor<1x1xbf16>",
               "tensor<1x1xbf16>",
               {tensor("tensor<1x2xbf16>", {256, 1}),
                tensor("tensor<1x1xi64>", {0}), tensor("tensor<1x1xbf16>", {1}),
                tensor("tensor<1x1x2xbf16>", {1, 1}),
                tensor("tensor<1x1x1xbf16>", {1}),
                tensor("tensor<1x1xbf16>", {-255})}),
      (Numbers{1}));
}

}  // namespace
}  // namespace partita::nn
