// A perceptron, forward and backward, computes the same numbers after its
// activations and sums have moved into products.
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

// Formulas as differentiation leaves them, with common parts.
constexpr char kPerceptron[] = R"(
func.func @main(%x: tensor<4x8x16xbf16>, %w: tensor<16x32xbf16>, %b: tensor<32xbf16>, %v: tensor<32x16xbf16>, %g: tensor<4x8x16xbf16>) -> (tensor<4x8x16xbf16>, tensor<4x8x16xbf16>, tensor<16x32xbf16>, tensor<32xbf16>, tensor<32x16xbf16>, tensor<16xbf16>) {
  %one = arith.constant dense<1.0> : tensor<4x8x32xf32>
  %half = arith.constant dense<0.5> : tensor<4x8x32xf32>
  %slope = arith.constant dense<0.797884583> : tensor<4x8x32xf32>
  %cubic = arith.constant dense<4.471500e-02> : tensor<4x8x32xf32>
  %p = nn.dot_general %x, %w contract = [2] x [0] : tensor<4x8x16xbf16>, tensor<16x32xbf16> -> tensor<4x8x32xbf16>
  %bb = nn.broadcast %b dims = [2] : tensor<32xbf16> -> tensor<4x8x32xbf16>
  %pf = arith.extf %p : tensor<4x8x32xbf16> to tensor<4x8x32xf32>
  %bf = arith.extf %bb : tensor<4x8x32xbf16> to tensor<4x8x32xf32>
  %pb = arith.addf %pf, %bf : tensor<4x8x32xf32>
  %u = arith.truncf %pb : tensor<4x8x32xf32> to tensor<4x8x32xbf16>
  %uf = arith.extf %u : tensor<4x8x32xbf16> to tensor<4x8x32xf32>
  %u2 = arith.mulf %uf, %uf : tensor<4x8x32xf32>
  %u3 = arith.mulf %u2, %uf : tensor<4x8x32xf32>
  %c3 = arith.mulf %u3, %cubic : tensor<4x8x32xf32>
  %in = arith.addf %uf, %c3 : tensor<4x8x32xf32>
  %arg = arith.mulf %in, %slope : tensor<4x8x32xf32>
  %t = math.tanh %arg : tensor<4x8x32xf32>
  %t1 = arith.addf %t, %one : tensor<4x8x32xf32>
  %hu = arith.mulf %uf, %half : tensor<4x8x32xf32>
  %af = arith.mulf %hu, %t1 : tensor<4x8x32xf32>
  %a = arith.truncf %af : tensor<4x8x32xf32> to tensor<4x8x32xbf16>
  %y = nn.dot_general %a, %v contract = [2] x [0] : tensor<4x8x32xbf16>, tensor<32x16xbf16> -> tensor<4x8x16xbf16>
  %da = nn.dot_general %g, %v contract = [2] x [1] : tensor<4x8x16xbf16>, tensor<32x16xbf16> -> tensor<4x8x32xbf16>
  %daf = arith.extf %da : tensor<4x8x32xbf16> to tensor<4x8x32xf32>
  %d1 = arith.mulf %daf, %t1 : tensor<4x8x32xf32>
  %d2 = arith.mulf %daf, %hu : tensor<4x8x32xf32>
  %d3 = arith.mulf %d1, %half : tensor<4x8x32xf32>
  %tt = arith.mulf %t, %t : tensor<4x8x32xf32>
  %st = arith.subf %one, %tt : tensor<4x8x32xf32>
  %d4 = arith.mulf %d2, %st : tensor<4x8x32xf32>
  %d5 = arith.mulf %d4, %slope : tensor<4x8x32xf32>
  %d6 = arith.addf %d3, %d5 : tensor<4x8x32xf32>
  %d7 = arith.mulf %d5, %cubic : tensor<4x8x32xf32>
  %d8 = arith.mulf %d7, %uf : tensor<4x8x32xf32>
  %d9 = arith.mulf %d7, %u2 : tensor<4x8x32xf32>
  %d10 = arith.addf %d6, %d9 : tensor<4x8x32xf32>
  %d11 = arith.mulf %d8, %uf : tensor<4x8x32xf32>
  %d12 = arith.addf %d10, %d11 : tensor<4x8x32xf32>
  %d13 = arith.addf %d12, %d11 : tensor<4x8x32xf32>
  %du = arith.truncf %d13 : tensor<4x8x32xf32> to tensor<4x8x32xbf16>
  %dx = nn.dot_general %du, %w contract = [2] x [1] : tensor<4x8x32xbf16>, tensor<16x32xbf16> -> tensor<4x8x16xbf16>
  %dw = nn.dot_general %x, %du contract = [0, 1] x [0, 1] : tensor<4x8x16xbf16>, tensor<4x8x32xbf16> -> tensor<16x32xbf16>
  %db = nn.reduce sum %du dims = [0, 1] : tensor<4x8x32xbf16> -> tensor<32xbf16>
  %dv = nn.dot_general %a, %g contract = [0, 1] x [0, 1] : tensor<4x8x32xbf16>, tensor<4x8x16xbf16> -> tensor<32x16xbf16>
  %gf = arith.extf %g : tensor<4x8x16xbf16> to tensor<4x8x16xf32>
  %sf = nn.reduce sum %gf dims = [0, 1] : tensor<4x8x16xf32> -> tensor<16xf32>
  %dc = arith.truncf %sf : tensor<16xf32> to tensor<16xbf16>
  return %y, %dx, %dw, %db, %dv, %dc : tensor<4x8x16xbf16>, tensor<4x8x16xbf16>, tensor<16x32xbf16>, tensor<32xbf16>, tensor<32x16xbf16>, tensor<16xbf16>
}
)";

// Products as their definition says, in nn operations.
class Expander {
 public:
  explicit Expander(GemmOp op)
      : op_(op),
        builder_(op),
        math_(builder_, op.getLoc()),
        m_(op.getSizes()[1]),
        n_(op.getSizes()[2]),
        k_(op.getSizes()[3]) {}

  void run() {
    const Value lhs = matrix(op_.getLhs(), op_.getLhsStrides(), m_, k_),
                rhs = matrix(op_.getRhs(), op_.getRhsStrides(), k_, n_);
    Value sum = nn::DotGeneralOp::create(
        builder_, op_.getLoc(), wide(lhs), wide(rhs), llvm::ArrayRef<int64_t>{},
        llvm::ArrayRef<int64_t>{}, llvm::ArrayRef<int64_t>{1},
        llvm::ArrayRef<int64_t>{0});
    if (op_.getBias()) {
      const Value bias = nn::BroadcastOp::create(
          builder_, op_.getLoc(), llvm::cast<RankedTensorType>(sum.getType()),
          wide(op_.getBias()), llvm::ArrayRef<int64_t>{1});
      sum = add(sum, bias);
    }
    unsigned next = 1;
    if (op_.getPreactivation()) {
      const Value u = reshaped(wide(op_.getPreactivation()), {m_, n_});
      sum = mul(sum, geluGradient(u));
    } else if (op_.getActivation() == exec::Activation::kGeluTanh) {
      if (op_.getKept()) replace(next++, sum);
      const Value half = mul(sum, constant(sum, 0.5));
      sum = mul(half, add(tanh(inner(sum)), constant(sum, 1)));
    }
    replace(0, sum);
    if (op_.getLhsSums()) replace(next, sumOf(wide(lhs), 1));
    if (op_.getRhsSums()) replace(next, sumOf(wide(rhs), 0));
    op_.erase();
  }

 private:
  static RankedTensorType typeOf(Value value) {
    return llvm::cast<RankedTensorType>(value.getType());
  }
  Value constant(Value like, double value) {
    return math_.constant(typeOf(like), value);
  }
  Value add(Value a, Value b) {
    return arith::AddFOp::create(builder_, op_.getLoc(), a, b);
  }
  Value mul(Value a, Value b) {
    return arith::MulFOp::create(builder_, op_.getLoc(), a, b);
  }
  Value tanh(Value x) {
    return mlir::math::TanhOp::create(builder_, op_.getLoc(), x);
  }
  Value inner(Value x) {
    const Value cube = mul(mul(x, x), x);
    return mul(constant(x, 0.7978845608),
               add(x, mul(constant(x, 0.044715), cube)));
  }
  Value geluGradient(Value x) {
    const Value t = tanh(inner(x)), one = constant(x, 1);
    const Value curve = add(one, mul(constant(x, 3 * 0.044715), mul(x, x)));
    const Value slope = mul(constant(x, 0.7978845608), curve);
    const Value rest =
        arith::SubFOp::create(builder_, op_.getLoc(), one, mul(t, t));
    return mul(constant(x, 0.5), add(add(one, t), mul(x, mul(rest, slope))));
  }
  Value sumOf(Value matrix, int64_t dim) {
    const RankedTensorType type = typeOf(matrix);
    return nn::ReduceOp::create(
        builder_, op_.getLoc(),
        RankedTensorType::get({type.getDimSize(1 - dim)},
                              type.getElementType()),
        nn::ReduceKind::sum, matrix, llvm::ArrayRef<int64_t>{dim});
  }
  Value wide(Value value) {
    return arith::ExtFOp::create(builder_, op_.getLoc(),
                                 typeOf(value).clone(builder_.getF32Type()),
                                 value);
  }
  Value reshaped(Value value, llvm::ArrayRef<int64_t> shape) {
    return nn::ReshapeOp::create(builder_, op_.getLoc(),
                                 typeOf(value).clone(shape), value);
  }
  // The matrix of a dense operand, stored by rows or by columns.
  Value matrix(Value value, llvm::ArrayRef<int64_t> strides, int64_t rows,
               int64_t columns) {
    if (strides[2] == 1) return reshaped(value, {rows, columns});
    return nn::TransposeOp::create(builder_, op_.getLoc(),
                                   reshaped(value, {columns, rows}),
                                   llvm::ArrayRef<int64_t>{1, 0});
  }
  void replace(unsigned result, Value value) {
    const auto type =
        llvm::cast<RankedTensorType>(op_->getResult(result).getType());
    const Value rounded = arith::TruncFOp::create(
        builder_, op_.getLoc(), typeOf(value).clone(type.getElementType()),
        value);
    op_->getResult(result).replaceAllUsesWith(
        reshaped(rounded, type.getShape()));
  }

  GemmOp op_;
  mlir::OpBuilder builder_;
  nn::MathBuilder math_;
  int64_t m_, n_, k_;
};

std::vector<nn::Tensor> Values(FuncOp function) {
  std::mt19937 generator(1);
  std::uniform_real_distribution<double> real(-1, 1);
  std::vector<nn::Tensor> arguments;
  for (mlir::Type type : function.getArgumentTypes()) {
    nn::Tensor tensor(llvm::cast<RankedTensorType>(type));
    for (int64_t i = 0; i < tensor.size(); ++i)
      tensor.setFloat(i, real(generator));
    arguments.push_back(tensor);
  }
  auto results = nn::interpret(function, arguments);
  EXPECT_TRUE(mlir::succeeded(results));
  return {results->begin(), results->end()};
}

TEST(FuseIntoProductsTest, PerceptronsComputeTheSame) {
  mlir::DialectRegistry registry;
  nn::registerExternalModels(registry);
  mlir::MLIRContext context(registry);
  context
      .loadDialect<mlir::func::FuncDialect, arith::ArithDialect,
                   mlir::math::MathDialect, nn::NNDialect, exec::ExecDialect>();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(kPerceptron, &context);
  ASSERT_TRUE(module);
  const auto main = module->lookupSymbol<FuncOp>("main");
  const std::vector<nn::Tensor> expected = Values(main);
  mlir::PassManager passes(&context);
  passes.addPass(createSelectLibraryCallsPass({.gpu = true}));
  passes.addPass(createFuseIntoProductsPass());
  ASSERT_TRUE(mlir::succeeded(passes.run(*module)));
  int kept = 0, given = 0, sums = 0, reductions = 0;
  llvm::SmallVector<GemmOp> products;
  main->walk([&](GemmOp op) {
    products.push_back(op);
    kept += op.getKept() != nullptr;
    given += op.getPreactivation() != nullptr;
    sums += op.getLhsSums() != nullptr || op.getRhsSums() != nullptr;
  });
  main->walk([&](nn::ReduceOp) { ++reductions; });
  EXPECT_EQ(kept, 1);
  EXPECT_EQ(given, 1);
  EXPECT_EQ(sums, 2);
  EXPECT_EQ(reductions, 0);
  for (GemmOp op : products) Expander(op).run();
  const std::vector<nn::Tensor> found = Values(main);
  ASSERT_EQ(found.size(), expected.size());
  for (size_t result = 0; result < found.size(); ++result) {
    double differences = 0, squares = 0, largest = 0;
    for (int64_t i = 0; i < found[result].size(); ++i) {
      const double value = expected[result].getFloat(i),
                   difference = found[result].getFloat(i) - value;
      differences += difference * difference;
      squares += value * value;
      largest = std::max(largest, std::abs(difference));
    }
    // A rounding to bf16 changes a number by at most 1 / 512 of it. The
    // gradient of the input follows three: of the activation's gradient, of the
    // pre-activation's, and its own.
    EXPECT_LE(std::sqrt(differences / squares), 3.0 / 512) << result;
    // The norm hides single wrong numbers. Those that are rounded differ by a
    // few times the mean.
    EXPECT_LE(largest, 8 * 3.0 / 512 *
                           std::sqrt(squares /
                                     static_cast<double>(found[result].size())))
        << result;
  }
}

}  // namespace
}  // namespace partita::kernels
