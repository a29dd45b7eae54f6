// Routers in models of 16 bits.
#include <gtest/gtest.h>

#include "compiler/autodiff/passes.h"
#include "dialects/nn/dialect.h"
#include "dialects/nn/interpreter.h"
#include "frontends/builder/emitter.h"
#include "frontends/builder/routing.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

namespace partita::autodiff {
namespace {

mlir::DialectRegistry dialects() {
  mlir::DialectRegistry registry;
  registry.insert<nn::NNDialect, mlir::func::FuncDialect,
                  mlir::arith::ArithDialect, mlir::math::MathDialect>();
  nn::registerExternalModels(registry);
  return registry;
}

// bf16 has the whole numbers to 256 only.
TEST(RoutingPrecision, RowsOfAnExpertAreCountedExactly) {
  constexpr int64_t kRows = 320, kCapacity = 300;
  mlir::MLIRContext context(dialects());
  context.loadAllAvailableDialects();
  mlir::OpBuilder b(&context);
  const mlir::Location loc = b.getUnknownLoc();
  const auto type = mlir::RankedTensorType::get({1, kRows, 2}, b.getF32Type());
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(loc);
  b.setInsertionPointToEnd(module->getBody());
  auto main =
      mlir::func::FuncOp::create(b, loc, "main", b.getFunctionType({type}, {}));
  mlir::Block* block = main.addEntryBlock();
  b.setInsertionPointToEnd(block);
  builder::Emitter e(b);
  builder::RoutingOptions options;
  options.capacity = kCapacity;
  const builder::Routing routing =
      builder::route(e, {block->getArgument(0)}, {}, options);
  const mlir::Value results[] = {routing.ids.value, routing.weights.value};
  mlir::func::ReturnOp::create(b, loc, results);
  main.setFunctionType(
      b.getFunctionType({type}, mlir::ValueRange(results).getTypes()));

  ReducePrecisionPassOptions precision;
  precision.type = "bf16";
  mlir::PassManager passes(&context);
  passes.addPass(createReducePrecisionPass(precision));
  ASSERT_TRUE(succeeded(passes.run(*module)));

  nn::Tensor logits(type);
  for (int64_t row = 0; row < kRows; ++row) logits.setFloat(2 * row, 1);
  const auto tensors = nn::interpret(main, {logits});
  ASSERT_TRUE(succeeded(tensors));
  for (int64_t row = 0; row < kRows; ++row)
    EXPECT_EQ(tensors->front().getInt(row), row < kCapacity ? 0 : -1) << row;
}

// A router's product, scores and weights are f32; only nn.experts gets rounded
// weights. Each of its results would have fewer bits otherwise.
TEST(RoutingPrecision, RoutersComputeInF32) {
  mlir::MLIRContext context(dialects());
  context.loadAllAvailableDialects();
  mlir::OpBuilder b(&context);
  auto module = mlir::parseSourceString<mlir::ModuleOp>(R"(
    func.func @main(%x: tensor<1x3x4xf32> {nn.kind = "input", nn.name = "x"},
        %r: tensor<2x4xf32> {nn.kind = "parameter", nn.name = "r"},
        %up: tensor<2x5x4xf32> {nn.kind = "parameter", nn.name = "up"},
        %down: tensor<2x4x5xf32> {nn.kind = "parameter", nn.name = "down"})
        -> (tensor<1x3x4xf32> {nn.name = "y"}) {
      %z = nn.dot_general %x, %r contract = [2] x [1] : tensor<1x3x4xf32>, tensor<2x4xf32> -> tensor<1x3x2xf32>
      %s = nn.softmax %z axis = 2 : tensor<1x3x2xf32>
      %w, %i = nn.top_k %s largest = true : tensor<1x3x2xf32> -> tensor<1x3x1xf32>, tensor<1x3x1xi64>
      %y = nn.experts %x[%i], %w up(%up : tensor<2x5x4xf32>) down(%down : tensor<2x4x5xf32>)
        activation = relu : tensor<1x3x4xf32>, tensor<1x3x1xi64>, tensor<1x3x1xf32> -> tensor<1x3x4xf32>
      return %y : tensor<1x3x4xf32>
    })",
                                                        &context);
  ASSERT_TRUE(module);
  ReducePrecisionPassOptions precision;
  precision.type = "bf16";
  mlir::PassManager passes(&context);
  passes.addPass(createReducePrecisionPass(precision));
  ASSERT_TRUE(succeeded(passes.run(*module)));
  int found = 0;
  module->walk([&](mlir::Operation* op) {
    if (llvm::isa<nn::DotGeneralOp, nn::SoftmaxOp, nn::TopKOp>(op)) {
      ++found;
      EXPECT_TRUE(
          mlir::getElementTypeOrSelf(op->getResult(0).getType()).isF32());
    }
    if (auto experts = llvm::dyn_cast<nn::ExpertsOp>(op)) {
      ++found;
      for (mlir::Value operand : {experts.getX(), experts.getWeights()})
        EXPECT_TRUE(mlir::getElementTypeOrSelf(operand.getType()).isBF16());
    }
  });
  EXPECT_EQ(found, 4);
}

}  // namespace
}  // namespace partita::autodiff
