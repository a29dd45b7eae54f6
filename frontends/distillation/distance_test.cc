// Closed forms of the losses, computed by the interpreter.
#include "frontends/distillation/distance.h"

#include <cmath>
#include <functional>
#include <vector>

#include "dialects/nn/dialect.h"
#include "dialects/nn/interpreter.h"
#include "gtest/gtest.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::distillation {
namespace {

using Numbers = std::vector<double>;
using Build =
    std::function<mlir::Value(mlir::OpBuilder&, mlir::Value, mlir::Value)>;

class DistanceTest : public testing::Test {
 protected:
  DistanceTest() : context_(registry()) { context_.loadAllAvailableDialects(); }

  static mlir::DialectRegistry registry() {
    mlir::DialectRegistry registry;
    registry.insert<nn::NNDialect, mlir::func::FuncDialect,
                    mlir::arith::ArithDialect, mlir::math::MathDialect>();
    nn::registerExternalModels(registry);
    return registry;
  }

  // The loss of two tensors [rows, columns], row-major.
  double lossOf(int64_t columns, const Numbers& student, const Numbers& teacher,
                const Build& build) {
    mlir::OpBuilder builder(&context_);
    const mlir::Location loc = builder.getUnknownLoc();
    const int64_t rows = static_cast<int64_t>(student.size()) / columns;
    const auto type =
        mlir::RankedTensorType::get({rows, columns}, builder.getF32Type());
    mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(loc);
    builder.setInsertionPointToEnd(module->getBody());
    auto main = mlir::func::FuncOp::create(
        builder, loc, "main",
        builder.getFunctionType({type, type}, {mlir::RankedTensorType::get(
                                                  {}, builder.getF32Type())}));
    mlir::Block* block = main.addEntryBlock();
    builder.setInsertionPointToEnd(block);
    mlir::func::ReturnOp::create(
        builder, loc,
        build(builder, block->getArgument(0), block->getArgument(1)));
    nn::Tensor s(type), t(type);
    for (int64_t i = 0; i < s.size(); ++i) {
      s.setFloat(i, student[i]);
      t.setFloat(i, teacher[i]);
    }
    auto results = nn::interpret(main, {s, t});
    EXPECT_TRUE(mlir::succeeded(results));
    return mlir::succeeded(results) ? (*results)[0].getFloat(0) : 0;
  }

  double divergenceOf(int64_t columns, const Numbers& student,
                      const Numbers& teacher, double temperature) {
    return lossOf(columns, student, teacher,
                  [&](mlir::OpBuilder& b, mlir::Value s, mlir::Value t) {
                    return divergence(b, b.getUnknownLoc(), s, t, temperature);
                  });
  }
  double hiddenOf(int64_t columns, const Numbers& student,
                  const Numbers& teacher, HiddenLoss loss) {
    return lossOf(columns, student, teacher,
                  [&](mlir::OpBuilder& b, mlir::Value s, mlir::Value t) {
                    return hiddenDistance(b, b.getUnknownLoc(), s, t, loss);
                  });
  }

  mlir::MLIRContext context_;
};

// The teacher's shares at temperature 2 are 3/4 and 1/4, the student's 1/2; in
// the second row both have 1/2.
TEST_F(DistanceTest, DivergenceOfTwoClasses) {
  const double kl = 0.75 * std::log(1.5) + 0.25 * std::log(0.5);
  EXPECT_NEAR(divergenceOf(2, {7, 7, -1, -1}, {2 * std::log(3), 0, 4, 4}, 2),
              4 * kl / 2, 1e-6);
}

TEST_F(DistanceTest, DivergenceOfEqualLogitsIsZero) {
  const Numbers logits = {1, -2, 3, 90, -90, 0.5};
  EXPECT_EQ(divergenceOf(3, logits, logits, 3), 0);
  // Logits of equal differences are equal shares.
  EXPECT_NEAR(divergenceOf(3, {1, 2, 3}, {11, 12, 13}, 1), 0, 1e-5);
}

// Far logits: the teacher is sure of the first class, and the student of the
// second, by 200.
TEST_F(DistanceTest, DivergenceOfExtremes) {
  EXPECT_NEAR(divergenceOf(2, {0, 200}, {200, 0}, 1), 200, 1e-3);
  EXPECT_NEAR(divergenceOf(2, {0, 200}, {200, 0}, 2), 4 * 100, 1e-3);
}

TEST_F(DistanceTest, HiddenLosses) {
  EXPECT_NEAR(hiddenOf(2, {1, 2, 3, 4}, {1, 0, 0, 4}, HiddenLoss::kMse),
              (4.0 + 9.0) / 4, 1e-6);
  // cos is 0, -1 and 0.6.
  EXPECT_NEAR(hiddenOf(2, {1, 0, 2, 2, 3, 0}, {0, 5, -1, -1, 3, 4},
                       HiddenLoss::kCosine),
              (1 + 2 + 0.4) / 3, 1e-6);
}

}  // namespace
}  // namespace partita::distillation
