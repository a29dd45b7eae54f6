// Factors with the largest floats, rounded to 8 bits.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "compiler/autodiff/passes.h"
#include "dialects/nn/dialect.h"
#include "dialects/nn/interpreter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

namespace partita::autodiff {
namespace {

// Returns three numbers as the factor of a product with 1, which is exact.
std::vector<double> rounded(const std::string& mark,
                            const std::vector<double>& numbers) {
  mlir::DialectRegistry registry;
  registry.insert<nn::NNDialect, mlir::func::FuncDialect,
                  mlir::arith::ArithDialect, mlir::math::MathDialect>();
  nn::registerExternalModels(registry);
  mlir::MLIRContext context(registry);
  context.loadAllAvailableDialects();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(
      R"(func.func @main(%x: tensor<3x1xf32>, %one: tensor<1x1xf32>) -> tensor<3x1xf32> {
        %0 = nn.dot_general %x, %one contract = [1] x [0] {nn.float8 = ")" +
          mark + R"("} : tensor<3x1xf32>, tensor<1x1xf32> -> tensor<3x1xf32>
        return %0 : tensor<3x1xf32>
      })",
      &context);
  EXPECT_TRUE(module);
  mlir::PassManager passes(&context);
  passes.addPass(createRoundFloat8FactorsPass());
  EXPECT_TRUE(succeeded(passes.run(*module)));
  auto main = module->lookupSymbol<mlir::func::FuncOp>("main");
  nn::Tensor x(mlir::cast<mlir::RankedTensorType>(main.getArgumentTypes()[0])),
      one(mlir::cast<mlir::RankedTensorType>(main.getArgumentTypes()[1]));
  for (size_t i = 0; i < numbers.size(); ++i)
    x.setFloat(static_cast<int64_t>(i), numbers[i]);
  one.setFloat(0, 1);
  const auto results = nn::interpret(main, {x, one});
  EXPECT_TRUE(succeeded(results));
  std::vector<double> found;
  for (int64_t i = 0; i < 3; ++i) found.push_back((*results)[0].getFloat(i));
  return found;
}

TEST(Float8Rounding, TheLargestNumbersStayFinite) {
  // e4m3 has three bits behind the point, e5m2 has two.
  EXPECT_EQ(rounded("forward", {0x1.79p127, -0x1.ddp127, 0}),
            (std::vector<double>{0x1.8p127, -0x1.ep127, 0}));
  EXPECT_EQ(rounded("gradient_lhs", {0x1.79p127, -0x1.cdp127, 0x1p100}),
            (std::vector<double>{0x1.8p127, -0x1.cp127, 0x1p100}));
}

TEST(Float8Rounding, AnInfiniteNumberMakesAllNan) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity(),
                   kNan = std::numeric_limits<double>::quiet_NaN();
  for (const double number : {kInfinity, -kInfinity, kNan})
    for (const double value : rounded("forward", {number, 1, -0x1.2p126}))
      EXPECT_TRUE(std::isnan(value)) << value;
}

TEST(Float8Rounding, OrdinaryNumbersHaveTheLeastPower) {
  // p is 1 up to 1.75 and 2 above. The least number of 8 bits is 2^-17 p.
  EXPECT_EQ(rounded("forward", {1.75, 0x1p-17, 0x1p-18}),
            (std::vector<double>{1.75, 0x1p-17, 0}));
  EXPECT_EQ(rounded("forward", {1.876, 0x1p-17, 0}),
            (std::vector<double>{1.875, 0, 0}));
}

}  // namespace
}  // namespace partita::autodiff
