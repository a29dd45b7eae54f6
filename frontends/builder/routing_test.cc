// Choices and weights of routers, computed by the interpreter.
#include "frontends/builder/routing.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "dialects/nn/dialect.h"
#include "dialects/nn/interpreter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::builder {
namespace {

using Numbers = std::vector<double>;

class RoutingTest : public testing::Test {
 protected:
  RoutingTest() : context_(registry()) { context_.loadAllAvailableDialects(); }

  static mlir::DialectRegistry registry() {
    mlir::DialectRegistry registry;
    registry.insert<nn::NNDialect, mlir::func::FuncDialect,
                    mlir::arith::ArithDialect, mlir::math::MathDialect>();
    nn::registerExternalModels(registry);
    return registry;
  }

  // Routes [batch, rows, experts] of logits, row-major.
  struct Result {
    std::vector<int64_t> ids;
    Numbers weights;
  };
  Result routed(Dims shape, const Numbers& logits, const Numbers& correction,
                const RoutingOptions& options) {
    mlir::OpBuilder builder(&context_);
    const auto type = mlir::RankedTensorType::get(shape, builder.getF32Type());
    const auto bias =
        mlir::RankedTensorType::get({shape.back()}, builder.getF32Type());
    mlir::OwningOpRef<mlir::ModuleOp> module =
        mlir::ModuleOp::create(builder.getUnknownLoc());
    builder.setInsertionPointToEnd(module->getBody());
    auto main =
        mlir::func::FuncOp::create(builder, builder.getUnknownLoc(), "main",
                                   builder.getFunctionType({type, bias}, {}));
    mlir::Block* block = main.addEntryBlock();
    builder.setInsertionPointToEnd(block);
    Emitter e(builder);
    const Routing routing =
        route(e, {block->getArgument(0)},
              correction.empty() ? Val() : Val{block->getArgument(1)}, options);
    EXPECT_FALSE(e.failed());
    const mlir::Value results[] = {routing.ids.value, routing.weights.value};
    mlir::func::ReturnOp::create(builder, builder.getUnknownLoc(), results);
    main.setFunctionType(builder.getFunctionType(
        {type, bias}, mlir::ValueRange(results).getTypes()));
    nn::Tensor x(type), b(bias);
    for (int64_t i = 0; i < x.size(); ++i) x.setFloat(i, logits[i]);
    for (size_t i = 0; i < correction.size(); ++i) b.setFloat(i, correction[i]);
    auto tensors = nn::interpret(main, {x, b});
    Result result;
    EXPECT_TRUE(succeeded(tensors));
    if (failed(tensors)) return result;
    for (int64_t i = 0; i < (*tensors)[0].size(); ++i)
      result.ids.push_back((*tensors)[0].getInt(i));
    for (int64_t i = 0; i < (*tensors)[1].size(); ++i)
      result.weights.push_back((*tensors)[1].getFloat(i));
    return result;
  }

  static void expectNear(const Numbers& actual, const Numbers& expected) {
    ASSERT_EQ(actual.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_NEAR(actual[i], expected[i], 1e-5) << "element " << i;
  }

  mlir::MLIRContext context_;
};

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

TEST_F(RoutingTest, TheBestByTheirShares) {
  RoutingOptions options;
  options.top_k = 2;
  const Numbers logits = {std::log(2.0), std::log(5.0), 0, std::log(2.5)};
  Result result = routed({1, 1, 4}, logits, {}, options);
  EXPECT_EQ(result.ids, (std::vector<int64_t>{1, 3}));
  expectNear(result.weights, {5 / 10.5, 2.5 / 10.5});
  options.is_normalised = true;
  options.scale = 3;
  result = routed({1, 1, 4}, logits, {}, options);
  EXPECT_EQ(result.ids, (std::vector<int64_t>{1, 3}));
  expectNear(result.weights, {2, 1});
}

TEST_F(RoutingTest, ACorrectionChangesTheChoiceOnly) {
  RoutingOptions options;
  options.scores = RoutingOptions::Scores::kSigmoid;
  options.top_k = 2;
  const Result result = routed({1, 1, 3}, {1, 2, -1}, {-1, 0, 0.5}, options);
  EXPECT_EQ(result.ids, (std::vector<int64_t>{1, 2}));
  expectNear(result.weights, {sigmoid(2), sigmoid(-1)});
}

TEST_F(RoutingTest, TheBestWithinTheBestGroups) {
  RoutingOptions options;
  options.scores = RoutingOptions::Scores::kSigmoid;
  options.top_k = 2;
  options.groups = 3;
  options.open_groups = 1;
  // The best expert of all is in the group of the least sum.
  const Result result = routed(
      {1, 2, 6}, {3, -9, 1, 1, 0, 1, /**/ 0, 0, 1, 0, 2, 1}, {}, options);
  EXPECT_EQ(result.ids, (std::vector<int64_t>{2, 3, 4, 5}));
  options.open_groups = 2;
  EXPECT_EQ(routed({1, 1, 6}, {3, -9, 1, 1, 0, 1}, {}, options).ids,
            (std::vector<int64_t>{2, 3}));
  options.open_groups = 3;
  EXPECT_EQ(routed({1, 1, 6}, {3, -9, 1, 1, 0, 1}, {}, options).ids,
            (std::vector<int64_t>{0, 2}));
}

// As in transformers 5.23, whose closed experts have a score of -inf; 0 would
// be more than what the corrections leave to the open ones here.
TEST_F(RoutingTest, ARowStaysInItsGroupsDespiteNegativeScores) {
  RoutingOptions options;
  options.scores = RoutingOptions::Scores::kSigmoid;
  options.top_k = 2;
  options.groups = 2;
  options.open_groups = 1;
  const Result result =
      routed({1, 1, 4}, {0, 0, 0, 0}, {-1, -3, -2.5, -2.5}, options);
  EXPECT_EQ(result.ids, (std::vector<int64_t>{0, 1}));
  expectNear(result.weights, {0.5, 0.5});
}

// Rows of each sequence are counted apart.
TEST_F(RoutingTest, RowsBeyondTheCapacityAreDropped) {
  RoutingOptions options;
  options.capacity = 2;
  const Numbers first = {1, 0}, second = {0, 1};
  Numbers logits;
  for (const Numbers& row : {first, second, first, first, second, second,
                             second, first, first, second})
    logits.insert(logits.end(), row.begin(), row.end());
  const Result result = routed({2, 5, 2}, logits, {}, options);
  EXPECT_EQ(result.ids, (std::vector<int64_t>{0, 1, 0, -1, 1, 1, 1, 0, 0, -1}));
  expectNear(result.weights, Numbers(10, sigmoid(1)));
}

// Rows 0 and 1 choose expert 0 first; row 2's second choice is behind them and
// behind row 3's first one.
TEST_F(RoutingTest, SecondChoicesQueueBehindAllFirstOnes) {
  RoutingOptions options;
  options.top_k = 2;
  options.capacity = 2;
  const Numbers logits = {3, 2, 0, /**/ 3, 0, 2, /**/ 2, 3, 0, /**/ 0, 3, 2};
  const Result result = routed({1, 4, 3}, logits, {}, options);
  // Choices: (0, 1), (0, 2), (1, 0), (1, 2).
  EXPECT_EQ(result.ids, (std::vector<int64_t>{0, -1, 0, 2, 1, -1, 1, 2}));
  options.capacity = 3;
  EXPECT_EQ(routed({1, 4, 3}, logits, {}, options).ids,
            (std::vector<int64_t>{0, 1, 0, 2, 1, 0, 1, 2}));
}

// Row 2 is surer of expert 0 than rows 0 and 1, and row 1 as sure as row 0.
TEST_F(RoutingTest, TheSurestRowsComeFirst) {
  RoutingOptions options;
  options.top_k = 2;
  options.capacity = 2;
  options.is_prioritised = true;
  const Numbers logits = {2, 1, 0, /**/ 2, 1, 0, /**/ 5, 0, 1, /**/ 1, 2, 0};
  // Choices: (0, 1), (0, 1), (0, 2), (1, 0). First ones: row 2, row 0; then
  // second ones: expert 1 has row 3 and takes row 0.
  EXPECT_EQ(routed({1, 4, 3}, logits, {}, options).ids,
            (std::vector<int64_t>{0, 1, -1, -1, 0, 2, 1, -1}));
  options.is_prioritised = false;
  EXPECT_EQ(routed({1, 4, 3}, logits, {}, options).ids,
            (std::vector<int64_t>{0, 1, 0, -1, -1, 2, 1, -1}));
}

}  // namespace
}  // namespace partita::builder
