// The three products of a linear layer compute the same numbers after the
// library reads their bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "compiler/kernels/passes.h"
#include "dialects/exec/dialect.h"
#include "dialects/nn/dialect.h"
#include "dialects/nn/interpreter.h"
#include "dialects/nn/math_builder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

namespace partita::kernels {
namespace {

namespace arith = mlir::arith;
using exec::GemmOp;
using mlir::RankedTensorType;
using mlir::Value;
using mlir::func::FuncOp;

// y = x w + b, and the gradients of x and w for a gradient g of y.
constexpr char kLinear[] = R"(
func.func @main(%x: tensor<2x16x32xf8E4M3FN>, %w: tensor<32x48xf8E4M3FN>, %g: tensor<2x16x48xf8E5M2>, %b: tensor<48xbf16>, %xs: tensor<f32>, %ws: tensor<f32>, %gs: tensor<f32>) -> (tensor<2x16x48xbf16>, tensor<2x16x32xbf16>, tensor<32x48xbf16>) {
  %xf = arith.extf %x : tensor<2x16x32xf8E4M3FN> to tensor<2x16x32xf32>
  %xb = nn.broadcast %xs dims = [] : tensor<f32> -> tensor<2x16x32xf32>
  %xm = arith.mulf %xf, %xb : tensor<2x16x32xf32>
  %xr = arith.truncf %xm : tensor<2x16x32xf32> to tensor<2x16x32xbf16>
  %wf = arith.extf %w : tensor<32x48xf8E4M3FN> to tensor<32x48xf32>
  %wb = nn.broadcast %ws dims = [] : tensor<f32> -> tensor<32x48xf32>
  %wm = arith.mulf %wf, %wb : tensor<32x48xf32>
  %wr = arith.truncf %wm : tensor<32x48xf32> to tensor<32x48xbf16>
  %gf = arith.extf %g : tensor<2x16x48xf8E5M2> to tensor<2x16x48xf32>
  %gb = nn.broadcast %gs dims = [] : tensor<f32> -> tensor<2x16x48xf32>
  %gm = arith.mulf %gf, %gb : tensor<2x16x48xf32>
  %gr = arith.truncf %gm : tensor<2x16x48xf32> to tensor<2x16x48xbf16>
  %p = nn.dot_general %xr, %wr contract = [2] x [0] : tensor<2x16x32xbf16>, tensor<32x48xbf16> -> tensor<2x16x48xbf16>
  %pf = arith.extf %p : tensor<2x16x48xbf16> to tensor<2x16x48xf32>
  %bb = nn.broadcast %b dims = [2] : tensor<48xbf16> -> tensor<2x16x48xbf16>
  %bf = arith.extf %bb : tensor<2x16x48xbf16> to tensor<2x16x48xf32>
  %s = arith.addf %pf, %bf : tensor<2x16x48xf32>
  %y = arith.truncf %s : tensor<2x16x48xf32> to tensor<2x16x48xbf16>
  %dx = nn.dot_general %gr, %wr contract = [2] x [1] : tensor<2x16x48xbf16>, tensor<32x48xbf16> -> tensor<2x16x32xbf16>
  %dw = nn.dot_general %xr, %gr contract = [0, 1] x [0, 1] : tensor<2x16x32xbf16>, tensor<2x16x48xbf16> -> tensor<32x48xbf16>
  return %y, %dx, %dw : tensor<2x16x48xbf16>, tensor<2x16x32xbf16>, tensor<32x48xbf16>
}
)";

RankedTensorType TypeOf(Value value) {
  return llvm::cast<RankedTensorType>(value.getType());
}

// Replaces a product by its definition: act(scale * sum + bias), with factors
// [m, k] and [n, k].
void Expand(GemmOp op) {
  mlir::OpBuilder builder(op);
  nn::MathBuilder math(builder, op.getLoc());
  const int64_t m = op.getSizes()[1], n = op.getSizes()[2],
                k = op.getSizes()[3];
  const auto wide = [&](Value value) -> Value {
    return arith::ExtFOp::create(
        builder, op.getLoc(), TypeOf(value).clone(builder.getF32Type()), value);
  };
  Value sum = nn::DotGeneralOp::create(
      builder, op.getLoc(), wide(math.reshape(op.getLhs(), {m, k})),
      wide(math.reshape(op.getRhs(), {n, k})), llvm::ArrayRef<int64_t>{},
      llvm::ArrayRef<int64_t>{}, llvm::ArrayRef<int64_t>{1},
      llvm::ArrayRef<int64_t>{1});
  RankedTensorType type = TypeOf(sum);
  sum = math.multiply(
      sum, math.broadcast(math.reshape(op.getScale(), {}), type, {}));
  if (op.getBias())
    sum = math.add(sum, math.broadcast(wide(op.getBias()), type, {1}));
  const RankedTensorType result = TypeOf(op.getResult());
  op.getResult().replaceAllUsesWith(
      math.reshape(math.narrow(sum, type.clone(result.getElementType())),
                   result.getShape()));
  op.erase();
}

std::vector<nn::Tensor> Values(FuncOp function) {
  std::mt19937 generator(1);
  std::uniform_real_distribution<double> real(-1, 1);
  std::vector<nn::Tensor> arguments;
  for (mlir::Type type : function.getArgumentTypes()) {
    nn::Tensor tensor(llvm::cast<RankedTensorType>(type));
    const bool is_scale = tensor.size() == 1;
    for (int64_t i = 0; i < tensor.size(); ++i)
      tensor.setFloat(i, is_scale ? 0.25 : real(generator));
    arguments.push_back(tensor);
  }
  auto results = nn::interpret(function, arguments);
  EXPECT_TRUE(mlir::succeeded(results));
  return {results->begin(), results->end()};
}

TEST(SelectFloat8ProductsTest, LinearLayersComputeTheSame) {
  mlir::DialectRegistry registry;
  nn::registerExternalModels(registry);
  mlir::MLIRContext context(registry);
  context
      .loadDialect<mlir::func::FuncDialect, arith::ArithDialect,
                   mlir::math::MathDialect, nn::NNDialect, exec::ExecDialect>();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(kLinear, &context);
  ASSERT_TRUE(module);
  const auto main = module->lookupSymbol<FuncOp>("main");
  const std::vector<nn::Tensor> expected = Values(main);
  mlir::PassManager passes(&context);
  passes.addPass(createSelectFloat8ProductsPass());
  ASSERT_TRUE(mlir::succeeded(passes.run(*module)));
  llvm::SmallVector<GemmOp> products;
  main->walk([&](GemmOp op) { products.push_back(op); });
  ASSERT_EQ(products.size(), 3u);
  for (GemmOp op : products) Expand(op);
  const std::vector<nn::Tensor> found = Values(main);
  ASSERT_EQ(found.size(), expected.size());
  for (size_t result = 0; result < found.size(); ++result) {
    double largest = 0;
    for (int64_t i = 0; i < expected[result].size(); ++i)
      largest = std::max(largest, std::abs(expected[result].getFloat(i)));
    ASSERT_GT(largest, 0.1);
    // The sum joins the bias before it is rounded to bf16: one rounding of the
    // sum, at most 1 larger than the result, and two of the result differ, by
    // up to 1/256 each. Gradients differ in nothing.
    const double tolerance = result == 0 ? (3 * largest + 1) / 256 : 0;
    for (int64_t i = 0; i < found[result].size(); ++i)
      ASSERT_NEAR(found[result].getFloat(i), expected[result].getFloat(i),
                  tolerance)
          << "result " << result << ", element " << i;
  }
}

}  // namespace
}  // namespace partita::kernels
