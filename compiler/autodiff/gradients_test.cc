// Gradients of all operations against central differences. To test a new
// operation, add a line to `cases`.
#include <set>

#include "compiler/autodiff/expert_cases_fixture.h"
#include "compiler/autodiff/gradient_fixture.h"
#include "dialects/nn/dialect.h"
#include "llvm/ADT/STLExtras.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace partita::autodiff {
namespace {

using nn::Tensor;

constexpr int kSeeds = 3;

Case unary(const std::string& op, double low = -2, double high = 2) {
  return {{"tensor<3x4xf64>"},
          {"tensor<3x4xf64>"},
          "%r = " + op + " %a : tensor<3x4xf64>",
          low,
          high};
}
Case binary(const std::string& op, double low = -2, double high = 2) {
  return {{"tensor<3x4xf64>", "tensor<3x4xf64>"},
          {"tensor<3x4xf64>"},
          "%r = " + op + " %a, %b : tensor<3x4xf64>",
          low,
          high};
}
// Uses the constant `splat` as second operand.
Case binaryWith(const std::string& op, const std::string& splat,
                double low = -2) {
  return {{"tensor<3x4xf64>"},
          {"tensor<3x4xf64>"},
          "%b = arith.constant dense<" + splat +
              "> : tensor<3x4xf64>\n%r = " + op + " %a, %b : tensor<3x4xf64>",
          low};
}
Case ternary(const std::string& operation) {
  const std::string type = "tensor<3x4xf64>";
  return {{type, type, type}, {type}, "%r = " + operation + " : " + type};
}

std::vector<Case> elementwiseCases() {
  return {
      binary("arith.addf"),
      binary("arith.subf"),
      binary("arith.mulf"),
      binary("arith.divf", 0.5, 2),
      binary("arith.remf", 0.5, 4),
      unary("arith.negf"),
      binary("arith.maximumf"),
      binary("arith.minimumf"),
      binary("arith.maxnumf"),
      binary("arith.minnumf"),
      binaryWith("arith.maximumf", "0.0"),
      binaryWith("arith.minimumf", "0.0"),
      binaryWith("arith.maximumf", "0.5"),
      {{"tensor<3x4xi1>", "tensor<3x4xf64>", "tensor<3x4xf64>"},
       {"tensor<3x4xf64>"},
       "%r = arith.select %a, %b, %c : tensor<3x4xi1>, tensor<3x4xf64>"},
      // The same value twice.
      {{"tensor<3xf64>"},
       {"tensor<3xf64>"},
       "%r = arith.mulf %a, %a : tensor<3xf64>"},
      {{"tensor<3xf32>"},
       {"tensor<3xf64>"},
       "%r = arith.extf %a : tensor<3xf32> to tensor<3xf64>"},
      {{"tensor<3xf64>"},
       {"tensor<3xf32>"},
       "%r = arith.truncf %a : tensor<3xf64> to tensor<3xf32>",
       -2,
       2,
       1,
       1e-2,
       1e-4},
      unary("math.absf"),
      unary("math.acos", -0.9, 0.9),
      unary("math.acosh", 1.2, 3),
      unary("math.asin", -0.9, 0.9),
      unary("math.asinh"),
      unary("math.atan"),
      unary("math.atanh", -0.9, 0.9),
      unary("math.cbrt", 0.3, 2),
      unary("math.ceil"),
      unary("math.cos"),
      unary("math.cosh"),
      unary("math.erf"),
      unary("math.erfc"),
      unary("math.exp"),
      unary("math.exp2"),
      unary("math.expm1"),
      unary("math.floor"),
      unary("math.log", 0.3, 2),
      unary("math.log10", 0.3, 2),
      unary("math.log1p", -0.5, 2),
      unary("math.log2", 0.3, 2),
      unary("math.roundeven"),
      unary("math.round"),
      unary("math.rsqrt", 0.3, 2),
      unary("math.sin"),
      // With gradients of both results, and of the first alone.
      {{"tensor<3x4xf64>"},
       {"tensor<3x4xf64>", "tensor<3x4xf64>"},
       "%r:2 = math.sincos %a : tensor<3x4xf64>",
       -2,
       2,
       /*losses=*/2},
      {{"tensor<3x4xf64>"},
       {"tensor<3x4xf64>", "tensor<3x4xf64>"},
       "%r:2 = math.sincos %a : tensor<3x4xf64>"},
      unary("math.sinh"),
      unary("math.sqrt", 0.3, 2),
      unary("math.tan", -1.2, 1.2),
      unary("math.tanh"),
      unary("math.trunc"),
      binary("math.atan2"),
      binary("math.copysign"),
      binary("math.powf", 0.3, 2),
      binaryWith("math.powf", "0.0"),
      binaryWith("math.powf", "1.0"),
      binaryWith("math.powf", "2.0"),
      binaryWith("math.powf", "3.0"),
      binaryWith("math.powf", "-2.5", 0.5),
      {{"tensor<9xf64>", "tensor<9xi32>"},
       {"tensor<9xf64>"},
       "%r = math.fpowi %a, %b : tensor<9xf64>, tensor<9xi32>"},
      ternary("math.clampf %a to [%b, %c]"),
      ternary("math.fma %a, %b, %c"),
  };
}

std::vector<Case> movementCases() {
  return {
      {{"tensor<2x1x3xf64>"},
       {"tensor<2x5x4x3xf64>"},
       "%r = nn.broadcast %a dims = [0, 2, 3] : tensor<2x1x3xf64> -> "
       "tensor<2x5x4x3xf64>"},
      {{"tensor<f64>"},
       {"tensor<2x2xf64>"},
       "%r = nn.broadcast %a dims = [] : tensor<f64> -> tensor<2x2xf64>"},
      {{"tensor<1x3xf64>"},
       {"tensor<1x3xf64>"},
       "%r = nn.broadcast %a dims = [0, 1] : tensor<1x3xf64> -> "
       "tensor<1x3xf64>"},
      {{"tensor<2x6xf64>"},
       {"tensor<3x4xf64>"},
       "%r = nn.reshape %a : tensor<2x6xf64> -> tensor<3x4xf64>"},
      {{"tensor<2x3x4xf64>"},
       {"tensor<4x2x3xf64>"},
       "%r = nn.transpose %a perm = [2, 0, 1] : tensor<2x3x4xf64> -> "
       "tensor<4x2x3xf64>"},
      {{"tensor<2x1xf64>", "tensor<2x3xf64>", "tensor<2x2xf64>"},
       {"tensor<2x6xf64>"},
       "%r = nn.concat %a, %b, %c axis = 1 : (tensor<2x1xf64>, "
       "tensor<2x3xf64>, tensor<2x2xf64>) -> tensor<2x6xf64>"},
      {{"tensor<2x3xf64>"},
       {"tensor<2x6xf64>"},
       "%r = nn.concat %a, %a axis = 1 : (tensor<2x3xf64>, tensor<2x3xf64>) -> "
       "tensor<2x6xf64>"},
      {{"tensor<4x7xf64>"},
       {"tensor<4x3xf64>"},
       "%r = nn.slice %a starts = [0, 1] strides = [1, 2] : tensor<4x7xf64> -> "
       "tensor<4x3xf64>"},
      {{"tensor<4x8xf64>"},
       {"tensor<2x3xf64>"},
       "%r = nn.slice %a starts = [3, 6] strides = [-2, -3] : tensor<4x8xf64> "
       "-> tensor<2x3xf64>"},
      {{"tensor<4xf64>"},
       {"tensor<0xf64>"},
       "%r = nn.slice %a starts = [0] strides = [1] : tensor<4xf64> -> "
       "tensor<0xf64>"},
      {{"tensor<3x4xf64>", "tensor<f64>"},
       {"tensor<6x4xf64>"},
       "%r = nn.pad %a, %b low = [1, 0] high = [2, 0] : tensor<3x4xf64>, "
       "tensor<f64> -> tensor<6x4xf64>"},
      {{"tensor<3x4xf64>", "tensor<f64>"},
       {"tensor<6x9xf64>"},
       "%r = nn.pad %a, %b low = [1, 3] high = [2, 2] mode = edge : "
       "tensor<3x4xf64>, tensor<f64> -> tensor<6x9xf64>"},
      {{"tensor<3x4xf64>", "tensor<f64>"},
       {"tensor<6x9xf64>"},
       "%r = nn.pad %a, %b low = [1, 3] high = [2, 2] mode = reflect : "
       "tensor<3x4xf64>, tensor<f64> -> tensor<6x9xf64>"},
      {{"tensor<3x4xf64>", "tensor<f64>"},
       {"tensor<12x9xf64>"},
       "%r = nn.pad %a, %b low = [5, 3] high = [4, 2] mode = wrap : "
       "tensor<3x4xf64>, tensor<f64> -> tensor<12x9xf64>"},
      // Indices from 0 to 9: many are out of range, many repeat.
      {{"tensor<6x3xf64>", "tensor<4x2x1xi64>"},
       {"tensor<4x2x3xf64>"},
       "%r = nn.gather %a[%b] axes = [0] : tensor<6x3xf64>, tensor<4x2x1xi64> "
       "-> tensor<4x2x3xf64>"},
      {{"tensor<2x6x3x5xf64>", "tensor<2x4x2xi32>"},
       {"tensor<2x4x3xf64>"},
       "%r = nn.gather %a[%b] axes = [3, 1] batch_dims = 1 : "
       "tensor<2x6x3x5xf64>, tensor<2x4x2xi32> -> tensor<2x4x3xf64>"},
      {{"tensor<200xf64>", "tensor<4x1xi8>"},
       {"tensor<4xf64>"},
       "%r = nn.gather %a[%b] axes = [0] : tensor<200xf64>, tensor<4x1xi8> -> "
       "tensor<4xf64>"},
      {{"tensor<6x3xf64>", "tensor<9x1xi64>", "tensor<9x3xf64>"},
       {"tensor<6x3xf64>"},
       "%r = nn.scatter %a[%b], %c axes = [0] kind = add : tensor<6x3xf64>, "
       "tensor<9x1xi64>, tensor<9x3xf64> -> tensor<6x3xf64>"},
      {{"tensor<6x3xf64>", "tensor<9x1xi64>", "tensor<9x3xf64>"},
       {"tensor<6x3xf64>"},
       "%r = nn.scatter %a[%b], %c axes = [0] kind = set : tensor<6x3xf64>, "
       "tensor<9x1xi64>, tensor<9x3xf64> -> tensor<6x3xf64>"},
      {{"tensor<2x6x3x5xf64>", "tensor<2x8x2xi32>", "tensor<2x8x3xf64>"},
       {"tensor<2x6x3x5xf64>"},
       "%r = nn.scatter %a[%b], %c axes = [3, 1] batch_dims = 1 kind = set : "
       "tensor<2x6x3x5xf64>, tensor<2x8x2xi32>, tensor<2x8x3xf64> -> "
       "tensor<2x6x3x5xf64>"},
      {{"tensor<2x6x3x5xf64>", "tensor<2x8x2xi32>", "tensor<2x8x3xf64>"},
       {"tensor<2x6x3x5xf64>"},
       "%r = nn.scatter %a[%b], %c axes = [3, 1] batch_dims = 1 kind = add : "
       "tensor<2x6x3x5xf64>, tensor<2x8x2xi32>, tensor<2x8x3xf64> -> "
       "tensor<2x6x3x5xf64>"},
      {{"tensor<2x9xf64>"},
       {"tensor<2x3xf64>", "tensor<2x3xi64>"},
       "%r:2 = nn.top_k %a largest = true : tensor<2x9xf64> -> "
       "tensor<2x3xf64>, tensor<2x3xi64>"},
      {{"tensor<9xf64>"},
       {"tensor<4xf64>", "tensor<4xi32>"},
       "%r:2 = nn.top_k %a largest = false : tensor<9xf64> -> tensor<4xf64>, "
       "tensor<4xi32>"},
  };
}

std::vector<Case> contractionCases() {
  return {
      {{"tensor<2x3x4xf64>", "tensor<4x5xf64>"},
       {"tensor<2x3x5xf64>"},
       "%r = nn.dot_general %a, %b contract = [2] x [0] : tensor<2x3x4xf64>, "
       "tensor<4x5xf64> -> tensor<2x3x5xf64>"},
      {{"tensor<2x3xf64>", "tensor<3x2xf64>"},
       {"tensor<f64>"},
       "%r = nn.dot_general %a, %b contract = [0, 1] x [1, 0] : "
       "tensor<2x3xf64>, tensor<3x2xf64> -> tensor<f64>"},
      {{"tensor<2x3xf64>", "tensor<4xf64>"},
       {"tensor<2x3x4xf64>"},
       "%r = nn.dot_general %a, %b contract = [] x [] : tensor<2x3xf64>, "
       "tensor<4xf64> -> tensor<2x3x4xf64>"},
      {{"tensor<2x3xf64>"},
       {"tensor<2x2xf64>"},
       "%r = nn.dot_general %a, %a contract = [1] x [1] : tensor<2x3xf64>, "
       "tensor<2x3xf64> -> tensor<2x2xf64>"},
      {{"tensor<2x3x7xf64>", "tensor<4x3x3xf64>"},
       {"tensor<2x4x4xf64>"},
       "%r = nn.conv %a, %b strides = [2] dilations = [1] low = [1] high = [1] "
       "groups = 1 : tensor<2x3x7xf64>, tensor<4x3x3xf64> -> "
       "tensor<2x4x4xf64>"},
      {{"tensor<1x4x5x6xf64>", "tensor<6x2x3x2xf64>"},
       {"tensor<1x6x3x5xf64>"},
       "%r = nn.conv %a, %b strides = [2, 1] dilations = [1, 2] low = [1, 0] "
       "high = [1, 1] groups = 2 : tensor<1x4x5x6xf64>, tensor<6x2x3x2xf64> -> "
       "tensor<1x6x3x5xf64>"},
      {{"tensor<2x5x4x3xf64>", "tensor<4x3x2x2xf64>"},
       {"tensor<2x4x3x4xf64>"},
       "%r = nn.conv %a, %b strides = [1, 1] dilations = [1, 1] low = [0, 0] "
       "high = [0, 0] groups = 1 channels_last : tensor<2x5x4x3xf64>, "
       "tensor<4x3x2x2xf64> -> tensor<2x4x3x4xf64>"},
      {{"tensor<1x3x5x4xf64>", "tensor<3x1x3x3xf64>"},
       {"tensor<1x3x5x4xf64>"},
       "%r = nn.conv %a, %b strides = [1, 1] dilations = [1, 1] low = [1, 1] "
       "high = [1, 1] groups = 3 : tensor<1x3x5x4xf64>, tensor<3x1x3x3xf64> -> "
       "tensor<1x3x5x4xf64>"},
      {{"tensor<1x2x3x4x3xf64>", "tensor<2x2x2x2x2xf64>"},
       {"tensor<1x2x2x3x2xf64>"},
       "%r = nn.conv %a, %b strides = [1, 1, 1] dilations = [1, 1, 1] low = "
       "[0, 0, 0] high = [0, 0, 0] groups = 1 : tensor<1x2x3x4x3xf64>, "
       "tensor<2x2x2x2x2xf64> -> tensor<1x2x2x3x2xf64>"},
      {{"tensor<2x7x5xf64>"},
       {"tensor<2x4x4xf64>"},
       "%r = nn.reduce_window sum %a window = [1, 3, 2] strides = [1, 2, 1] "
       "dilations = [1, 1, 1] low = [0, 1, 0] high = [0, 1, 0] : "
       "tensor<2x7x5xf64> -> tensor<2x4x4xf64>"},
      {{"tensor<2x7x5xf64>"},
       {"tensor<2x4x4xf64>"},
       "%r = nn.reduce_window max %a window = [1, 3, 2] strides = [1, 2, 1] "
       "dilations = [1, 1, 1] low = [0, 1, 0] high = [0, 1, 0] : "
       "tensor<2x7x5xf64> -> tensor<2x4x4xf64>"},
      {{"tensor<2x7x5xf64>"},
       {"tensor<2x4x4xf64>"},
       "%r = nn.reduce_window min %a window = [1, 3, 2] strides = [1, 2, 1] "
       "dilations = [1, 1, 1] low = [0, 1, 0] high = [0, 1, 0] : "
       "tensor<2x7x5xf64> -> tensor<2x4x4xf64>"},
      {{"tensor<9xf64>"},
       {"tensor<3xf64>"},
       "%r = nn.reduce_window max %a window = [3] strides = [2] dilations = "
       "[2] low = [0] high = [0] : tensor<9xf64> -> tensor<3xf64>"},
      {{"tensor<3x2x4xf64>"},
       {"tensor<3x4xf64>"},
       "%r = nn.reduce sum %a dims = [1] : tensor<3x2x4xf64> -> "
       "tensor<3x4xf64>"},
      {{"tensor<3x2x4xf64>"},
       {"tensor<2xf64>"},
       "%r = nn.reduce prod %a dims = [0, 2] : tensor<3x2x4xf64> -> "
       "tensor<2xf64>"},
      {{"tensor<3x2x4xf64>"},
       {"tensor<2xf64>"},
       "%r = nn.reduce max %a dims = [0, 2] : tensor<3x2x4xf64> -> "
       "tensor<2xf64>"},
      {{"tensor<3x2x4xf64>"},
       {"tensor<f64>"},
       "%r = nn.reduce min %a dims = [0, 1, 2] : tensor<3x2x4xf64> -> "
       "tensor<f64>"},
  };
}

std::vector<Case> compositeCases() {
  return {
      {{"tensor<2x5x3xf64>"},
       {"tensor<2x5x3xf64>"},
       "%r = nn.softmax %a axis = 1 : tensor<2x5x3xf64>"},
      {{"tensor<2x5xf64>"},
       {"tensor<2x5xf64>"},
       "%r = nn.softmax log %a axis = 1 : tensor<2x5xf64>"},
      {{"tensor<2x3x4xf64>", "tensor<3x4xf64>", "tensor<3x4xf64>"},
       {"tensor<2x3x4xf64>"},
       "%r = nn.layer_norm %a scale(%b : tensor<3x4xf64>) bias(%c : "
       "tensor<3x4xf64>) axis = 1 epsilon = 1.0e-2 : tensor<2x3x4xf64>"},
      {{"tensor<2x8xf64>", "tensor<8xf64>"},
       {"tensor<2x8xf64>"},
       "%r = nn.layer_norm %a scale(%b : tensor<8xf64>) axis = 1 epsilon = "
       "1.0e-2 : tensor<2x8xf64>"},
      {{"tensor<2x8xf64>", "tensor<8xf64>"},
       {"tensor<2x8xf64>"},
       "%r = nn.layer_norm %a bias(%b : tensor<8xf64>) axis = 1 epsilon = "
       "1.0e-2 : tensor<2x8xf64>"},
      {{"tensor<2x8xf64>"},
       {"tensor<2x8xf64>"},
       "%r = nn.layer_norm %a axis = 0 epsilon = 1.0e-2 : tensor<2x8xf64>"},
      {{"tensor<2x3x8xf64>", "tensor<8xf64>"},
       {"tensor<2x3x8xf64>"},
       "%r = nn.rms_norm %a scale(%b : tensor<8xf64>) axis = 2 epsilon = "
       "1.0e-2 : tensor<2x3x8xf64>"},
      {{"tensor<2x8xf64>"},
       {"tensor<2x8xf64>"},
       "%r = nn.rms_norm %a axis = 1 epsilon = 1.0e-2 : tensor<2x8xf64>"},
      {{"tensor<2x3x4xf64>", "tensor<3xf64>", "tensor<3xf64>", "tensor<3xf64>",
        "tensor<3xf64>"},
       {"tensor<2x3x4xf64>"},
       "%r = nn.batch_norm %a, %b, %c, %d, %e feature = 1 epsilon = 1.0e-2 : "
       "(tensor<2x3x4xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, "
       "tensor<3xf64>) -> tensor<2x3x4xf64>",
       0.3,
       2},
      {{"tensor<2x3x4xf64>", "tensor<3xf64>", "tensor<3xf64>", "tensor<3xf64>",
        "tensor<3xf64>"},
       {"tensor<2x3x4xf64>", "tensor<3xf64>", "tensor<3xf64>"},
       "%r:3 = nn.batch_norm %a, %b, %c, %d, %e feature = 1 epsilon = 1.0e-2 "
       "training momentum = 0.1 unbiased : (tensor<2x3x4xf64>, tensor<3xf64>, "
       "tensor<3xf64>, tensor<3xf64>, tensor<3xf64>) -> (tensor<2x3x4xf64>, "
       "tensor<3xf64>, tensor<3xf64>)",
       0.3,
       2},
      {{"tensor<2x2x3x4xf64>", "tensor<2x2x5x4xf64>", "tensor<2x2x5x3xf64>"},
       {"tensor<2x2x3x3xf64>"},
       "%r = nn.attention %a, %b, %c scale = 5.0e-1 : (tensor<2x2x3x4xf64>, "
       "tensor<2x2x5x4xf64>, tensor<2x2x5x3xf64>) -> tensor<2x2x3x3xf64>"},
      {{"tensor<1x4x3x2xf64>", "tensor<1x2x3x2xf64>", "tensor<1x2x3x2xf64>"},
       {"tensor<1x4x3x2xf64>"},
       "%r = nn.attention %a, %b, %c scale = 5.0e-1 causal_offset = 0 : "
       "(tensor<1x4x3x2xf64>, tensor<1x2x3x2xf64>, tensor<1x2x3x2xf64>) -> "
       "tensor<1x4x3x2xf64>"},
      {{"tensor<1x2x3x2xf64>", "tensor<1x1x4x2xf64>", "tensor<1x1x4x2xf64>",
        "tensor<1x2x3x1xf64>"},
       {"tensor<1x2x3x2xf64>"},
       "%r = nn.attention %a, %b, %c, %d scale = 5.0e-1 causal_offset = -1 "
       "softcap = 2.0 : (tensor<1x2x3x2xf64>, tensor<1x1x4x2xf64>, "
       "tensor<1x1x4x2xf64>, tensor<1x2x3x1xf64>) -> tensor<1x2x3x2xf64>"},
      {{"tensor<2x2x3x2xf64>", "tensor<2x2x4x2xf64>", "tensor<2x2x4x2xf64>",
        "tensor<2x1x3x4xf64>"},
       {"tensor<2x2x3x2xf64>"},
       "%r = nn.attention %a, %b, %c, %d scale = 5.0e-1 : "
       "(tensor<2x2x3x2xf64>, tensor<2x2x4x2xf64>, tensor<2x2x4x2xf64>, "
       "tensor<2x1x3x4xf64>) -> tensor<2x2x3x2xf64>"},
      {{"tensor<3x4xi8>", "tensor<3xf64>"},
       {"tensor<3x8xf64>"},
       "%r = nn.dequantize %a scale(%b) : (tensor<3x4xi8>, tensor<3xf64>) -> "
       "tensor<3x8xf64>"},
      // Targets from 0 to 9 of 7 classes; the loss is f32.
      {{"tensor<8x7xf64>", "tensor<8xi64>"},
       {"tensor<8xf32>"},
       "%r = nn.cross_entropy %a, %b : tensor<8x7xf64>, tensor<8xi64> -> "
       "tensor<8xf32>",
       -2,
       2,
       1,
       1e-2,
       2e-4},
      {{"tensor<2x4x7xf64>", "tensor<2x4xi8>"},
       {"tensor<2x4xf32>"},
       "%r = nn.cross_entropy %a, %b ignore_index = 2 label_smoothing = 0.3 : "
       "tensor<2x4x7xf64>, tensor<2x4xi8> -> tensor<2x4xf32>",
       -2,
       2,
       1,
       1e-2,
       2e-4},
  };
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const auto& some : {elementwiseCases(), movementCases(),
                           contractionCases(), compositeCases(), expertCases()})
    all.insert(all.end(), some.begin(), some.end());
  return all;
}

class GradientsTest : public GradientFixture {};

TEST_F(GradientsTest, CentralDifferences) {
  for (const Case& test : cases()) {
    for (int seed = 0; seed < kSeeds; ++seed) checkCase(test, seed);
    if (HasFatalFailure()) return;
  }
}

// In bf16, on the same numbers, gradients agree up to rounding.
TEST_F(GradientsTest, SixteenBits) {
  for (const Case& test : cases()) {
    const Case narrow = narrowed(test);
    SCOPED_TRACE(testing::Message() << narrow);
    const bool converts = test.body.find(" to tensor") != std::string::npos;
    if (converts) continue;
    const std::vector<Tensor> arguments = argumentsOf(narrow),
                              weights = weightsOf(narrow);
    const auto widen = [&](const std::vector<Tensor>& tensors,
                           const std::vector<std::string>& types) {
      std::vector<Tensor> wide;
      for (size_t i = 0; i < tensors.size(); ++i)
        wide.push_back(tensor(types[i], nn::numbersOf(tensors[i])));
      return wide;
    };
    std::vector<bool> wanted;
    for (const Tensor& argument : arguments)
      wanted.push_back(argument.isFloat());
    const auto found = gradients(narrow, arguments, weights, wanted);
    const auto expected = gradients(test, widen(arguments, test.arguments),
                                    widen(weights, test.results), wanted);
    ASSERT_EQ(found.size(), arguments.size());
    for (size_t i = 0; i < found.size(); ++i)
      expectNear(found[i], expected[i], 0.04);
    if (HasFatalFailure()) return;
  }
}

// Operations of arith and math whose results or operands are all integers, so
// no gradient flows through them.
bool isOfIntegers(llvm::StringRef name) {
  static const std::set<std::string> of_floats = {
      "arith.cmpf", "arith.fptosi", "arith.fptoui", "arith.sitofp",
      "arith.uitofp"};
  if (of_floats.count(name.str())) return true;
  if (name.starts_with("math.is")) return true;
  static const std::set<std::string> of_integers = {
      "math.absi", "math.ctlz", "math.cttz", "math.ctpop", "math.ipowi"};
  if (of_integers.count(name.str())) return true;
  // addi, divsi, maxui, extsi, trunci, index_cast, andi, shli ...
  return name.starts_with("arith.") &&
         (name.ends_with("i") || name.starts_with("arith.index_cast"));
}

// Every operation with a reference has a gradient and is in `cases`, or is
// listed here with the reason.
TEST_F(GradientsTest, AllOperationsHaveGradients) {
  const std::set<std::string> without = {
      "arith.constant",  // has no operands
      "arith.bitcast",   // not differentiable
      "nn.iota",         // has no operands
      "nn.loop",         // would have to keep every iteration's values
      "nn.random",       // its operand is a seed
      // Gradient operations, which are not differentiated again.
      "nn.attention_grad",
      "nn.conv_input_grad",
      "nn.conv_weight_grad",
      "nn.experts_grad",
      "nn.grouped_dot_weight_grad",
      "nn.reduce_window_grad",
  };
  std::set<std::string> tested;
  for (const Case& test : cases()) {
    auto module = moduleOf(test);
    ASSERT_TRUE(module);
    mlir::Block& block = functionNamed(*module, "f").front();
    tested.insert(std::prev(block.end(), 2)->getName().getStringRef().str());
  }
  int count = 0;
  for (mlir::RegisteredOperationName name :
       context_.getRegisteredOperations()) {
    if (!name.hasInterface<nn::ReferenceOpInterface>()) continue;
    const std::string op = name.getStringRef().str();
    if (name.hasInterface<GradientOpInterface>()) {
      ++count;
      EXPECT_TRUE(tested.count(op)) << op << " has a gradient but no case";
      EXPECT_FALSE(without.count(op)) << op;
    } else {
      EXPECT_TRUE(without.count(op) || isOfIntegers(op))
          << op << " has no gradient";
    }
  }
  EXPECT_GE(count, 60);
}

}  // namespace
}  // namespace partita::autodiff
