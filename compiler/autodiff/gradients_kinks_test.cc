// Gradients where there is no derivative, and operations that refuse.
#include <cmath>

#include "compiler/autodiff/gradient_fixture.h"
#include "dialects/nn/dialect.h"

namespace partita::autodiff {
namespace {

using nn::Tensor;

class GradientsKinksTest : public GradientFixture {};

// Expected values are from PyTorch 2.15 at points without a derivative. The
// results' gradients are 1.
struct Kink {
  std::string body;
  std::vector<std::vector<double>> arguments, gradients;
  std::string result = "";  // if not as %a
};

TEST_F(GradientsKinksTest, Kinks) {
  const double nan = std::nan(""), inf = INFINITY;
  const std::string zero = "%b = arith.constant dense<0.0> : TYPE\n";
  const std::vector<Kink> kinks = {
      {"%r = arith.maximumf %a, %b : TYPE",
       {{1, 2, 0, nan}, {1, 1, 3, 0}},
       {{0.5, 1, 0, 1}, {0.5, 0, 1, 1}}},
      {"%r = arith.maxnumf %a, %b : TYPE",
       {{1, 2, 0, nan}, {1, 1, 3, 0}},
       {{0.5, 1, 0, 0}, {0.5, 0, 1, 1}}},
      {"%r = arith.minnumf %a, %b : TYPE",
       {{1, 2, 0, nan}, {1, 1, 3, 0}},
       {{0.5, 0, 1, 0}, {0.5, 1, 0, 1}}},
      // relu
      {zero + "%r = arith.maximumf %a, %b : TYPE",
       {{0, -1, nan, 1}},
       {{0, 0, 1, 1}}},
      {zero + "%r = arith.minimumf %a, %b : TYPE",
       {{0, -1, nan, 1}},
       {{0, 1, 1, 0}}},
      {"%r = math.absf %a : TYPE", {{0, -1, nan}}, {{0, -1, 0}}},
      // clamp with numbers as bounds
      {"%r = math.clampf %a to [%b, %c] : TYPE",
       {{1, 2, 0, 3, 4}, {1, 1, 1, 1, 1}, {3, 3, 3, 3, 3}},
       {{1, 1, 0, 1, 0}, {0, 0, 1, 0, 0}, {0, 0, 0, 0, 1}}},
      {"%r = math.powf %a, %b : TYPE",
       {{0, 0, 0, 0, -2, -2}, {0, 1, 2, 0.5, 2, 0}},
       {{0, 1, 0, inf, -4, 0}, {0, 0, 0, 0, nan, nan}}},
      {"%r = math.atan2 %a, %b : TYPE", {{0, 1}, {0, 0}}, {{0, 0}, {0, -1}}},
      {"%r = math.copysign %a, %b : TYPE",
       {{0, 1, -2}, {-1, -1, -1}},
       {{0, -1, 1}, {0, 0, 0}}},
      {"%r = arith.remf %a, %b : TYPE", {{5, -5}, {3, 3}}, {{1, 1}, {-1, 1}}},
      {"%r = math.sqrt %a : TYPE", {{0}}, {{inf}}},
      {"%r = arith.divf %a, %b : TYPE", {{1}, {0}}, {{inf}, {-inf}}},
      {"%r = nn.reduce max %a dims = [0] : TYPE -> tensor<f64>",
       {{1, 1, 0}},
       {{0.5, 0.5, 0}},
       "tensor<f64>"},
      {"%r = nn.reduce max %a dims = [0] : TYPE -> tensor<f64>",
       {{1, nan, 0}},
       {{nan, nan, nan}},
       "tensor<f64>"},
      {"%r = nn.reduce prod %a dims = [0] : TYPE -> tensor<f64>",
       {{1, 2, 0}},
       {{0, 0, 2}},
       "tensor<f64>"},
      {"%r = nn.reduce prod %a dims = [0] : TYPE -> tensor<f64>",
       {{0, 2, 0}},
       {{0, 0, 0}},
       "tensor<f64>"},
  };
  for (Kink kink : kinks) {
    const std::string type =
        "tensor<" + std::to_string(kink.arguments.front().size()) + "xf64>";
    for (size_t at; (at = kink.body.find("TYPE")) != std::string::npos;)
      kink.body.replace(at, 4, type);
    const Case test = {std::vector<std::string>(kink.arguments.size(), type),
                       {kink.result.empty() ? type : kink.result},
                       kink.body};
    SCOPED_TRACE(testing::Message() << test);
    std::vector<Tensor> arguments;
    for (const auto& argument : kink.arguments)
      arguments.push_back(tensor(type, argument));
    Tensor ones(typeFrom(test.results.front()));
    for (int64_t i = 0; i < ones.size(); ++i) ones.setFloat(i, 1);
    const auto found = gradients(test, arguments, {ones},
                                 std::vector<bool>(arguments.size(), true));
    ASSERT_EQ(found.size(), kink.gradients.size());
    for (size_t i = 0; i < found.size(); ++i)
      expectNear(found[i], kink.gradients[i], 1e-12);
  }
}

TEST_F(GradientsKinksTest, RefusesWhatHasNone) {
  const std::vector<std::pair<Case, std::string>> refusals = {
      {{{"tensor<6x3xf64>", "tensor<9x1xi64>", "tensor<9x3xf64>"},
        {"tensor<6x3xf64>"},
        "%r = nn.scatter %a[%b], %c axes = [0] kind = mul : tensor<6x3xf64>, "
        "tensor<9x1xi64>, tensor<9x3xf64> -> tensor<6x3xf64>"},
       "'nn.scatter' op expected kind 'add' or 'set' for a gradient, found "
       "'mul'; write it with an operation on the gathered elements"},
      {{{"tensor<8xf64>"},
        {"tensor<7xf64>"},
        "%r = nn.reduce_window prod %a window = [2] strides = [1] dilations = "
        "[1] low = [0] high = [0] : tensor<8xf64> -> tensor<7xf64>"},
       "'nn.reduce_window' op expected kind 'sum', 'max' or 'min' for a "
       "gradient, found 'prod'; write it as exp of a sum of logarithms"},
  };
  for (const auto& [test, message] : refusals) {
    auto module = moduleOf(test);
    ASSERT_TRUE(module);
    mlir::Block& block = functionNamed(*module, "f").front();
    mlir::Operation* op = &block.front();
    std::string found;
    mlir::ScopedDiagnosticHandler handler(&context_,
                                          [&](mlir::Diagnostic& diagnostic) {
                                            found += diagnostic.str();
                                            return mlir::success();
                                          });
    mlir::OpBuilder builder(block.getTerminator());
    const mlir::Value result = op->getResult(0);
    const bool wanted[] = {true, false, true};
    Gradient gradient(builder, op, result,
                      llvm::ArrayRef(wanted, op->getNumOperands()));
    EXPECT_TRUE(mlir::failed(
        mlir::cast<GradientOpInterface>(op).buildGradient(gradient)));
    EXPECT_EQ(found, message);
  }
}

}  // namespace
}  // namespace partita::autodiff
