// What a step sends beside its backward pass are sums of gradients, and nothing
// else that it reduces outside of its layers.
#include "compiler/driver/planning/lower_step.h"

#include <gtest/gtest.h>

#include "compiler/driver/planning/find_layers.h"
#include "compiler/driver/registry.h"
#include "mlir/Parser/Parser.h"

namespace partita::driver {
namespace {

using planner::StepLaunch;

// Tokens' rows of a table, normalised over the batch, and their logits.
constexpr char kModel[] = R"(
func.func @main(
    %ids: tensor<4x6xi64> {nn.kind = "input", nn.name = "ids"},
    %embed: tensor<20x12xf32> {nn.kind = "parameter", nn.name = "first.embed", nn.source = #nn.init<"normal", 1.0 : f64, 0>},
    %scale: tensor<12xf32> {nn.kind = "parameter", nn.name = "first.scale", nn.source = #nn.init<"normal", 1.0 : f64, 1>},
    %mean: tensor<12xf32> {nn.kind = "buffer", nn.name = "first.mean", nn.source = #nn.init<"zeros", 0.0 : f64, 0>},
    %variance: tensor<12xf32> {nn.kind = "buffer", nn.name = "first.variance", nn.source = #nn.init<"zeros", 0.0 : f64, 0>},
    %head: tensor<12x20xf32> {nn.kind = "parameter", nn.name = "head.weight", nn.source = #nn.init<"normal", 1.0 : f64, 2>}) -> tensor<4x6x20xf32> {
  %0 = nn.reshape %ids : tensor<4x6xi64> -> tensor<4x6x1xi64>
  %1 = nn.gather %embed[%0] axes = [0] : tensor<20x12xf32>, tensor<4x6x1xi64> -> tensor<4x6x12xf32>
  %2, %s:2 = nn.batch_norm %1, %scale, %scale, %mean, %variance feature = 2 epsilon = 1.0e-5 training
      : (tensor<4x6x12xf32>, tensor<12xf32>, tensor<12xf32>, tensor<12xf32>, tensor<12xf32>) -> (tensor<4x6x12xf32>, tensor<12xf32>, tensor<12xf32>)
  %3 = nn.dot_general %2, %head contract = [2] x [0] : tensor<4x6x12xf32>, tensor<12x20xf32> -> tensor<4x6x20xf32>
  return %3 : tensor<4x6x20xf32>
}
)";
// Of the table and of the head. The gradient of the scale is of sums that the
// gradient of what is normalised is made of, too.
constexpr double kGradients = 4 * (20 * 12 + 12 * 20);

// A step without functions of its own: rows of a table, their products, and the
// update of the matrix.
constexpr char kPlainStep[] = R"(
func.func @main(
    %ids: tensor<4x6x1xi64> {nn.kind = "input", nn.name = "ids", nn.dims = ["B", "L", "1"]},
    %embed: tensor<20x12xf32> {nn.kind = "parameter", nn.name = "embed", nn.dims = ["V", "E"]},
    %w: tensor<12x16xf32> {nn.kind = "parameter", nn.name = "w", nn.dims = ["E", "M"]})
    -> (tensor<f32> {nn.name = "loss"}, tensor<12x16xf32> {nn.updates = "w"}) {
  %0 = nn.gather %embed[%ids] axes = [0] {nn.dims = [["B", "L", "E"]]} : tensor<20x12xf32>, tensor<4x6x1xi64> -> tensor<4x6x12xf32>
  %1 = nn.dot_general %0, %w contract = [2] x [0] {nn.dims = [["B", "L", "M"]]} : tensor<4x6x12xf32>, tensor<12x16xf32> -> tensor<4x6x16xf32>
  %2 = nn.reduce sum %1 dims = [0, 1, 2] : tensor<4x6x16xf32> -> tensor<f32>
  %3 = nn.dot_general %0, %1 contract = [0, 1] x [0, 1] {nn.dims = [["E", "M"]]} : tensor<4x6x12xf32>, tensor<4x6x16xf32> -> tensor<12x16xf32>
  %4 = arith.subf %w, %3 {nn.dims = [["E", "M"]]} : tensor<12x16xf32>
  return %2, %4 : tensor<f32>, tensor<12x16xf32>
}
)";

class LowerStepTest : public ::testing::Test {
 protected:
  LowerStepTest() : context_(Registry()) {
    context_.loadAllAvailableDialects();
    auto module = mlir::parseSourceString<mlir::ModuleOp>(kModel, &context_);
    Fault fault = Fault::kUser;
    auto found = findLayers(*module, plan::Precision::kF32, fault);
    if (mlir::succeeded(found)) found_ = std::move(*found);
  }

  static mlir::DialectRegistry Registry() {
    mlir::DialectRegistry registry;
    registerDialects(registry);
    return registry;
  }

  // Bytes and number of the reductions of a step on two devices.
  struct Sent {
    double beside = 0, waited_for = 0;
    int waits = 0;
  };
  static Sent sentUnder(const std::string& shard, mlir::ModuleOp module) {
    plan::Plan plan;
    plan.mesh = *plan::ParseMeshOption("d=2");
    plan.shard = *plan::ParseShardOption(shard, plan.mesh);
    const auto step = lowerStep(module, plan, /*gpu=*/true);
    EXPECT_TRUE(step.has_value());
    Sent sent;
    for (const StepLaunch& launch : step.value_or(std::vector<StepLaunch>())) {
      if (launch.kind != StepLaunch::Kind::kCollective ||
          launch.collective != core::CollectiveKind::kAllReduce)
        continue;
      (launch.beside ? sent.beside : sent.waited_for) += launch.bytes;
      sent.waits += !launch.beside;
    }
    return sent;
  }

  mlir::MLIRContext context_;
  FoundLayers found_;
};

// Rows that are looked up in parts of a table are waited for by what takes
// them, in @main as elsewhere.
TEST_F(LowerStepTest, WhatProductsReadIsNoGradient) {
  auto module = mlir::parseSourceString<mlir::ModuleOp>(kPlainStep, &context_);
  ASSERT_TRUE(module);
  const Sent rows = sentUnder("V=d", *module);
  EXPECT_EQ(rows.beside, 0);
  EXPECT_EQ(rows.waited_for, 4 * (4 * 6 * 12));
  // The loss is no gradient, either.
  const Sent sums = sentUnder("B=d", *module);
  EXPECT_EQ(sums.beside, 4 * (12 * 16));
  EXPECT_EQ(sums.waited_for, 4);
}

// Rows that are looked up, what softmax needs, and the gradient of what the
// head takes are waited for; each device has all of its gradients.
TEST_F(LowerStepTest, ADividedVocabularyHasNoSumsOfGradients) {
  const Sent sent = sentUnder("V=d", *found_.module);
  EXPECT_EQ(sent.beside, 0);
  EXPECT_GE(sent.waits, 3);
  EXPECT_GE(sent.waited_for, 2 * 4 * (4 * 6 * 12));
}

// The statistics of a batch, and those of its gradient, are sums that what
// follows waits for, and are stored or updates, too.
TEST_F(LowerStepTest, StatisticsOfABatchAreNoGradients) {
  const Sent sent = sentUnder("B=d", *found_.module);
  EXPECT_EQ(sent.beside, kGradients);
  EXPECT_GE(sent.waits, 2);
  EXPECT_GE(sent.waited_for, 2 * 4 * 12);
}

}  // namespace
}  // namespace partita::driver
