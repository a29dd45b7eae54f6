// Compares gradient operations with central differences of the forward
// operation, in f64.
#include <gtest/gtest.h>

#include <cmath>

#include "dialects/nn/interpreter.h"
#include "dialects/nn/interpreter_fixture.h"

namespace partita::nn {
namespace {

using Numbers = std::vector<double>;

class GradientsTest : public InterpreterFixture {
 protected:
  std::vector<Tensor> evaluate(const std::string& text,
                               const std::vector<Tensor>& arguments) {
    auto module = parse(text);
    const auto results = interpret(functionNamed(*module, "f"), arguments);
    EXPECT_TRUE(mlir::succeeded(results)) << text;
    return {results->begin(), results->end()};
  }

  // `forward` has a function @f from operands to one result. `backward` has one
  // from the same operands and the result's gradient to the gradients of the
  // operands in `wanted`.
  void expectGradients(const std::string& forward, const std::string& backward,
                       const std::vector<int>& wanted) {
    SCOPED_TRACE(backward);
    auto module = parse(forward);
    ASSERT_TRUE(module);
    mlir::func::FuncOp function = functionNamed(*module, "f");
    std::vector<Tensor> arguments = randomArguments(function);
    const Tensor result_grad = random(
        mlir::cast<mlir::RankedTensorType>(function.getResultTypes().front()));
    std::vector<Tensor> with_grad = arguments;
    with_grad.push_back(result_grad);
    const std::vector<Tensor> gradients = evaluate(backward, with_grad);
    ASSERT_EQ(gradients.size(), wanted.size());
    const auto loss = [&] {
      const auto results = interpret(function, arguments);
      double sum = 0;
      for (int64_t i = 0; i < result_grad.size(); ++i)
        sum += results->front().getFloat(i) * result_grad.getFloat(i);
      return sum;
    };
    for (size_t k = 0; k < wanted.size(); ++k) {
      Tensor& argument = arguments[wanted[k]];
      constexpr double kStep = 1e-5;
      for (int64_t i = 0; i < argument.size(); ++i) {
        const double value = argument.getFloat(i);
        argument.setFloat(i, value + kStep);
        const double above = loss();
        argument.setFloat(i, value - kStep);
        const double below = loss();
        argument.setFloat(i, value);
        EXPECT_NEAR(gradients[k].getFloat(i), (above - below) / (2 * kStep),
                    1e-8)
            << "operand " << wanted[k] << " at " << i;
      }
    }
  }

  // Checks both gradients of a convolution.
  void expectConvGradients(const std::string& input, const std::string& weight,
                           const std::string& attributes,
                           const std::string& result) {
    const std::string x = "tensor<" + input + "xf64>",
                      w = "tensor<" + weight + "xf64>",
                      y = "tensor<" + result + "xf64>";
    expectGradients(
        "func.func @f(%x: " + x + ", %w: " + w + ") -> " + y +
            " {\n%y = nn.conv %x, %w " + attributes + " : " + x + ", " + w +
            " -> " + y + "\nreturn %y : " + y + "\n}",
        "func.func @f(%x: " + x + ", %w: " + w + ", %g: " + y + ") -> (" + x +
            ", " + w + ") {\n%d = nn.conv_input_grad %g, %w " + attributes +
            " : " + y + ", " + w + " -> " + x +
            "\n%e = nn.conv_weight_grad %x, %g " + attributes + " : " + x +
            ", " + y + " -> " + w + "\nreturn %d, %e : " + x + ", " + w + "\n}",
        {0, 1});
  }

  void expectWindowGradient(const std::string& kind, const std::string& input,
                            const std::string& attributes,
                            const std::string& result) {
    const std::string x = "tensor<" + input + "xf64>",
                      y = "tensor<" + result + "xf64>";
    const std::string operand = kind == "sum" ? "" : ", %x",
                      type = kind == "sum" ? "" : ", " + x;
    expectGradients("func.func @f(%x: " + x + ") -> " + y +
                        " {\n%y = nn.reduce_window " + kind + " %x " +
                        attributes + " : " + x + " -> " + y +
                        "\nreturn %y : " + y + "\n}",
                    "func.func @f(%x: " + x + ", %g: " + y + ") -> " + x +
                        " {\n%d = nn.reduce_window_grad " + kind + " %g" +
                        operand + " " + attributes + " : (" + y + type +
                        ") -> " + x + "\nreturn %d : " + x + "\n}",
                    {0});
  }
};

TEST_F(GradientsTest, Convolution) {
  expectConvGradients("2x3x9x7", "4x3x3x2",
                      "strides = [2, 1] dilations = [1, 2] low = [1, 2] high = "
                      "[1, 0] groups = 1",
                      "2x4x5x7");
  expectConvGradients("2x8x3", "4x3x3",
                      "strides = [3] dilations = [1] low = [0] high = [1] "
                      "groups = 1 channels_last",
                      "2x3x4");
  expectConvGradients("1x2x3x4x5", "3x2x2x1x3",
                      "strides = [1, 1, 2] dilations = [1, 1, 1] low = [0, 0, "
                      "1] high = [0, 0, 1] groups = 1",
                      "1x3x2x4x3");
}

TEST_F(GradientsTest, ConvolutionInGroups) {
  expectConvGradients(
      "2x6x5", "9x2x2",
      "strides = [1] dilations = [3] low = [4] high = [5] groups = 3",
      "2x9x11");
  expectConvGradients("1x7x6x4", "8x1x3x3",
                      "strides = [2, 2] dilations = [1, 1] low = [1, 1] high = "
                      "[1, 1] groups = 4 channels_last",
                      "1x4x3x8");
}

TEST_F(GradientsTest, Windows) {
  for (const char* kind : {"sum", "max", "min"}) {
    expectWindowGradient(kind, "2x9x7",
                         "window = [1, 3, 2] strides = [1, 2, 1] dilations = "
                         "[1, 2, 1] low = [0, 2, 1] high = [0, 1, 0]",
                         "2x4x7");
    expectWindowGradient(kind, "11",
                         "window = [2] strides = [4] dilations = [1] low = [1] "
                         "high = [0]",
                         "3");
    expectWindowGradient(kind, "4",
                         "window = [3] strides = [1] dilations = [1] low = [2] "
                         "high = [2]",
                         "6");
  }
}

TEST_F(GradientsTest, OfEqualElementsTheFirstReceives) {
  const char* const text = R"(
    func.func @f(%x: tensor<2x4xf32>, %g: tensor<1x2xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>) {
      %0 = nn.reduce_window_grad max %g, %x window = [2, 2] strides = [2, 2] dilations = [1, 1] low = [0, 0] high = [0, 0] : (tensor<1x2xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
      %1 = nn.reduce_window_grad min %g, %x window = [2, 2] strides = [2, 2] dilations = [1, 1] low = [0, 0] high = [0, 0] : (tensor<1x2xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
      return %0, %1 : tensor<2x4xf32>, tensor<2x4xf32>
    })";
  const double inf = INFINITY;
  const std::vector<Tensor> found =
      evaluate(text, {tensor("tensor<2x4xf32>", {1, 5, -inf, -inf,  //
                                                 5, 1, -inf, NAN}),
                      tensor("tensor<1x2xf32>", {10, 20})});
  EXPECT_EQ(numbersOf(found[0]), (Numbers{0, 10, 0, 0, 0, 0, 0, 20}));
  EXPECT_EQ(numbersOf(found[1]), (Numbers{10, 0, 0, 0, 0, 0, 0, 20}));
}

TEST_F(GradientsTest, ElementsOfMinusInfinityComeBeforePadding) {
  const char* const text = R"(
    func.func @f(%x: tensor<2xf32>, %g: tensor<3xf32>) -> tensor<2xf32> {
      %0 = nn.reduce_window_grad max %g, %x window = [2] strides = [1] dilations = [1] low = [1] high = [1] : (tensor<3xf32>, tensor<2xf32>) -> tensor<2xf32>
      return %0 : tensor<2xf32>
    })";
  const std::vector<Tensor> found =
      evaluate(text, {tensor("tensor<2xf32>", {-INFINITY, -INFINITY}),
                      tensor("tensor<3xf32>", {1, 2, 4})});
  EXPECT_EQ(numbersOf(found[0]), (Numbers{3, 4}));
}

// `attributes` apply to nn.attention; the tensors are q, k, v and a bias.
std::string attention(const std::string& attributes, bool backward) {
  const std::string q = "tensor<2x4x3x2xf64>", k = "tensor<2x2x5x2xf64>",
                    v = "tensor<2x2x5x3xf64>", b = "tensor<1x4x1x5xf64>",
                    y = "tensor<2x4x3x3xf64>";
  const std::string arguments =
      "%q: " + q + ", %k: " + k + ", %v: " + v + ", %b: " + b;
  const std::string forward = "%y = nn.attention %q, %k, %v, %b " + attributes +
                              " : (" + q + ", " + k + ", " + v + ", " + b +
                              ") -> " + y + "\n";
  if (!backward)
    return "func.func @f(" + arguments + ") -> " + y + " {\n" + forward +
           "return %y : " + y + "\n}";
  const std::string grads = q + ", " + k + ", " + v + ", " + b;
  return "func.func @f(" + arguments + ", %g: " + y + ") -> (" + grads +
         ") {\n" + forward +
         "%d:4 = nn.attention_grad %q, %k, %v, %y, %g, %b " + attributes +
         " : (" + q + ", " + k + ", " + v + ", " + y + ", " + y + ", " + b +
         ") -> (" + grads + ")\nreturn %d#0, %d#1, %d#2, %d#3 : " + grads +
         "\n}";
}

TEST_F(GradientsTest, Attention) {
  // With offset -1 the first query sees no key.
  for (const char* attributes :
       {"scale = 0.5", "scale = 0.5 causal_offset = 1",
        "scale = 0.5 causal_offset = 2 window = 2",
        "scale = 0.5 causal_offset = 2 window = 2 sinks = 1",
        "scale = 0.5 causal_offset = 2 blocks = dense<[[[1, 0, 1], [0, 1, 1]]]>"
        " : tensor<1x2x3xi1> block_size = 2",
        "scale = 2.0 causal_offset = -1 softcap = 1.5"})
    expectGradients(attention(attributes, false), attention(attributes, true),
                    {0, 1, 2, 3});
}

}  // namespace
}  // namespace partita::nn
