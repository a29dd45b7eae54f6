// A reduction in several steps must equal the reduction in one.
#include <gtest/gtest.h>

#include <random>

#include "compiler/kernels/passes.h"
#include "dialects/nn/dialect.h"
#include "dialects/nn/interpreter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

namespace partita::kernels {
namespace {

using mlir::func::FuncOp;

struct Case {
  std::string name, kind, input, dims, result;
  // Largest difference for floats of elements about 1: sums are added in
  // another order.
  double most = 0;
};

void PrintTo(const Case& test, std::ostream* out) { *out << test.name; }

class SplitReductions : public testing::TestWithParam<Case> {};

nn::Tensor RandomTensor(mlir::Type type, std::mt19937& generator) {
  nn::Tensor tensor(llvm::cast<mlir::RankedTensorType>(type));
  const int most = tensor.type().getElementType().isInteger(1) ? 2 : 100;
  std::uniform_real_distribution<double> real(0.5, 1.5);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    if (tensor.isFloat())
      tensor.setFloat(i, real(generator));
    else
      tensor.setInt(i, static_cast<int64_t>(generator() % most));
  }
  return tensor;
}

TEST_P(SplitReductions, EqualOneStep) {
  const Case& test = GetParam();
  mlir::DialectRegistry registry;
  nn::registerExternalModels(registry);
  mlir::MLIRContext context(registry);
  context.loadDialect<mlir::func::FuncDialect, mlir::arith::ArithDialect,
                      mlir::math::MathDialect, nn::NNDialect>();
  const std::string text =
      "func.func @main(%x: tensor<" + test.input + ">) -> tensor<" +
      test.result + "> {\n  %0 = nn.reduce " + test.kind + " %x dims = [" +
      test.dims + "] : tensor<" + test.input + "> -> tensor<" + test.result +
      ">\n  return %0 : tensor<" + test.result + ">\n}\n";
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  ASSERT_TRUE(module);
  const auto reductions = [&] {
    int count = 0;
    module->walk([&](nn::ReduceOp) { ++count; });
    return count;
  };
  const auto values = [&] {
    std::mt19937 generator(1);
    auto main = module->lookupSymbol<FuncOp>("main");
    auto results = nn::interpret(
        main, {RandomTensor(main.getArgumentTypes()[0], generator)});
    EXPECT_TRUE(mlir::succeeded(results));
    return (*results)[0];
  };
  ASSERT_EQ(reductions(), 1);
  const nn::Tensor one = values();
  mlir::PassManager passes(&context);
  passes.addPass(createSplitReductionsPass());
  ASSERT_TRUE(mlir::succeeded(passes.run(*module)));
  EXPECT_GT(reductions(), 1);
  const nn::Tensor several = values();
  ASSERT_EQ(one.type(), several.type());
  for (int64_t i = 0; i < one.size(); ++i) {
    if (one.isFloat())
      ASSERT_NEAR(one.getFloat(i), several.getFloat(i), test.most) << i;
    else
      ASSERT_EQ(one.getInt(i), several.getInt(i)) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Cases, SplitReductions,
    testing::Values(
        Case{"Columns", "sum", "3000x40xf32", "0", "40xf32", 1e-2},
        Case{"ColumnsOfBf16", "sum", "3000x40xbf16", "0", "40xbf16", 16},
        Case{"Everything", "sum", "640x300xf64", "0, 1", "f64", 1e-8},
        Case{"AroundTheMiddle", "sum", "12x5x64x48xf32", "0, 2, 3", "5xf32",
             1e-1},
        Case{"FirstAndThird", "max", "24x3x200x2xf32", "0, 2", "3x2xf32"},
        Case{"BeforeAndBehind", "min", "2x30x4x50x6xf32", "1, 3", "2x4x6xf32"},
        Case{"Truth", "max", "4x32768xi1", "1", "4xi1"},
        Case{"Bytes", "min", "3000x40xi8", "0", "40xi8"},
        Case{"Words", "sum", "3000x40xi32", "0", "40xi32"},
        Case{"Ones", "sum", "1x4096x1x8xi64", "0, 1, 2", "8xi64"}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace partita::kernels
