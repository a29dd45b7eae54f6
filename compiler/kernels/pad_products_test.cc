// A padded product must equal the product.
#include <gtest/gtest.h>

#include <random>

#include "compiler/kernels/passes.h"
#include "dialects/nn/dialect.h"
#include "dialects/nn/interpreter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

namespace partita::kernels {
namespace {

using mlir::func::FuncOp;

struct Case {
  std::string name, lhs, rhs, dims, result;
};

void PrintTo(const Case& test, std::ostream* out) { *out << test.name; }

class PadProducts : public testing::TestWithParam<Case> {};

TEST_P(PadProducts, EqualsTheProduct) {
  const Case& test = GetParam();
  mlir::DialectRegistry registry;
  nn::registerExternalModels(registry);
  mlir::MLIRContext context(registry);
  context.loadDialect<mlir::func::FuncDialect, mlir::arith::ArithDialect,
                      nn::NNDialect>();
  const std::string text =
      "func.func @main(%a: tensor<" + test.lhs + "xbf16>, %b: tensor<" +
      test.rhs + "xbf16>) -> tensor<" + test.result +
      "xbf16> {\n  %0 = nn.dot_general %a, %b " + test.dims + " : tensor<" +
      test.lhs + "xbf16>, tensor<" + test.rhs + "xbf16> -> tensor<" +
      test.result + "xbf16>\n  return %0 : tensor<" + test.result +
      "xbf16>\n}\n";
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  ASSERT_TRUE(module);
  const auto product = [&] {
    std::mt19937 generator(1);
    std::normal_distribution<double> real;
    auto main = module->lookupSymbol<FuncOp>("main");
    std::vector<nn::Tensor> arguments;
    for (mlir::Type type : main.getArgumentTypes()) {
      nn::Tensor tensor(llvm::cast<mlir::RankedTensorType>(type));
      for (int64_t i = 0; i < tensor.size(); ++i)
        tensor.setFloat(i, real(generator));
      arguments.push_back(std::move(tensor));
    }
    auto results = nn::interpret(main, arguments);
    EXPECT_TRUE(mlir::succeeded(results));
    return (*results)[0];
  };
  const nn::Tensor expected = product();
  mlir::PassManager passes(&context);
  passes.addPass(createPadProductsPass({.least = 8}));
  ASSERT_TRUE(mlir::succeeded(passes.run(*module)));
  int pads = 0;
  module->walk([&](nn::PadOp) { ++pads; });
  EXPECT_GT(pads, 0);
  const nn::Tensor found = product();
  ASSERT_EQ(found.type(), expected.type());
  // Adding zeros changes no sum.
  for (int64_t i = 0; i < found.size(); ++i)
    ASSERT_EQ(found.getFloat(i), expected.getFloat(i)) << i;
}

INSTANTIATE_TEST_SUITE_P(
    Cases, PadProducts,
    testing::Values(
        Case{"logits", "9x16", "21x16", "contract = [1] x [1]", "9x21"},
        Case{"input_grad", "9x21", "21x16", "contract = [1] x [0]", "9x16"},
        Case{"weight_grad", "4x3x21", "4x3x16", "contract = [0, 1] x [0, 1]",
             "21x16"},
        Case{"transposed_weight_grad", "4x3x16", "4x3x21",
             "contract = [0, 1] x [0, 1]", "16x21"},
        Case{"all_odd", "9x21", "13x21", "contract = [1] x [1]", "9x13"},
        Case{"batch", "3x9x21", "3x21x13",
             "batch = [0] x [0] contract = [2] x [1]", "3x9x13"},
        Case{"two_contracted", "9x5x7", "5x7x16", "contract = [1, 2] x [0, 1]",
             "9x16"}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace partita::kernels
