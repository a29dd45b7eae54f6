// Bugs that other systems for parallel training had, injected into divided
// programs. Verify finds each, and names the operation and how it is divided.
#include "compiler/driver/registry.h"
#include "compiler/driver/verify/verify.h"
#include "dialects/dist/dialect.h"
#include "dialects/nn/dialect.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"

namespace partita::driver {
namespace {

using mlir::Value;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

// A layer of four experts, two per row, between a dense product and a head.
constexpr char kModel[] = R"(
func.func @main(%x: tensor<6x8xf32> {nn.kind = "input", nn.name = "x", nn.dims = ["B", "E"]},
    %in: tensor<8x8xf32> {nn.kind = "parameter", nn.name = "in", nn.source = #nn.init<"normal", 1.0 : f64, 5>},
    %router: tensor<8x4xf32> {nn.kind = "parameter", nn.name = "router", nn.source = #nn.init<"normal", 1.0 : f64, 0>},
    %gate: tensor<4x6x8xf32> {nn.kind = "parameter", nn.name = "gate", nn.dims = ["X", "M", "E"], nn.source = #nn.init<"normal", 1.0 : f64, 1>},
    %up: tensor<4x6x8xf32> {nn.kind = "parameter", nn.name = "up", nn.dims = ["X", "M", "E"], nn.source = #nn.init<"normal", 1.0 : f64, 2>},
    %down: tensor<4x8x6xf32> {nn.kind = "parameter", nn.name = "down", nn.dims = ["X", "E", "M"], nn.source = #nn.init<"normal", 1.0 : f64, 3>},
    %head: tensor<8x10xf32> {nn.kind = "parameter", nn.name = "head", nn.dims = ["E", "V"], nn.source = #nn.init<"normal", 1.0 : f64, 4>}) -> tensor<6x10xf32> {
  %0 = nn.dot_general %x, %in contract = [1] x [0] : tensor<6x8xf32>, tensor<8x8xf32> -> tensor<6x8xf32>
  %1 = math.tanh %0 : tensor<6x8xf32>
  %2 = nn.dot_general %1, %router contract = [1] x [0] : tensor<6x8xf32>, tensor<8x4xf32> -> tensor<6x4xf32>
  %3 = nn.softmax %2 axis = 1 : tensor<6x4xf32>
  %4, %5 = nn.top_k %3 largest = true : tensor<6x4xf32> -> tensor<6x2xf32>, tensor<6x2xi64>
  %6 = nn.experts %1[%5], %4 gate(%gate : tensor<4x6x8xf32>) up(%up : tensor<4x6x8xf32>) down(%down : tensor<4x8x6xf32>) activation = silu : tensor<6x8xf32>, tensor<6x2xi64>, tensor<6x2xf32> -> tensor<6x8xf32>
  %7 = nn.dot_general %6, %head contract = [1] x [0] : tensor<6x8xf32>, tensor<8x10xf32> -> tensor<6x10xf32>
  return %7 : tensor<6x10xf32>
}
)";

class VerifyMutationsTest : public testing::Test {
 protected:
  VerifyMutationsTest() : context_(Registry()) {}

  static mlir::DialectRegistry Registry() {
    mlir::DialectRegistry registry;
    registerDialects(registry);
    return registry;
  }

  // Expects that the plan is verified, and that it is not after `breaking`.
  // Returns the first difference; `unequal_` has the results that differ.
  std::string FirstDifference(
      const std::string& mesh, const std::string& shard,
      const std::function<void(mlir::ModuleOp)>& breaking) {
    EXPECT_EQ(Verify(mesh, shard, {}).getBoolean("equal"), true);
    bool has_broken = false;
    const llvm::json::Object facts =
        Verify(mesh, shard, [&](mlir::ModuleOp module) {
          const std::string before = Text(module);
          breaking(module);
          has_broken = before != Text(module);
        });
    EXPECT_TRUE(has_broken);
    EXPECT_EQ(facts.getBoolean("equal"), false);
    unequal_.clear();
    if (const llvm::json::Array* list = facts.getArray("unequal_results"))
      for (const llvm::json::Value& name : *list)
        unequal_.push_back(name.getAsString()->str());
    const std::string first = facts.getString("first").value_or("").str();
    RecordProperty("first", first);
    return first;
  }

  static std::string Text(mlir::ModuleOp module) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    module.print(stream);
    return text;
  }

  llvm::json::Object Verify(
      const std::string& mesh, const std::string& shard,
      const std::function<void(mlir::ModuleOp)>& breaking) {
    auto module = mlir::parseSourceString<mlir::ModuleOp>(kModel, &context_);
    plan::Plan plan;
    plan.mesh = *plan::ParseMeshOption(mesh);
    plan.shard = *plan::ParseShardOption(shard, plan.mesh);
    VerifyOptions options;
    options.train.optimizer = "adamw";
    options.train.clip_norm = 0.5;
    options.breaking = breaking;
    auto facts = verifyPlan(*module, plan, options);
    EXPECT_TRUE(mlir::succeeded(facts));
    return mlir::succeeded(facts) ? *facts->getAsObject()
                                  : llvm::json::Object();
  }

  mlir::MLIRContext context_;
  std::vector<std::string> unequal_;
};

void ReplaceBy(Value old, const std::function<Value(mlir::OpBuilder&)>& make) {
  mlir::OpBuilder builder(old.getContext());
  builder.setInsertionPointAfterValue(old);
  const Value fresh = make(builder);
  old.replaceAllUsesExcept(fresh, fresh.getDefiningOp());
}

// pytorch#160285: gradients of experts are twice too large where two devices
// share the experts.
TEST_F(VerifyMutationsTest, GradientsOfExpertsAreDoubled) {
  const std::string first =
      FirstDifference("t=2", "X=t", [](mlir::ModuleOp module) {
        module.walk([](nn::ExpertsGradOp grad) {
          for (Value of : grad.getParameterGrads())
            ReplaceBy(of, [&](mlir::OpBuilder& builder) -> Value {
              return mlir::arith::AddFOp::create(builder, grad.getLoc(), of,
                                                 of);
            });
        });
      });
  EXPECT_THAT(unequal_, Contains("the gradient of up"));
  EXPECT_THAT(first, HasSubstr("(X) over t"));
}

// torchtitan#4054: gradients of activations that enter experts are not summed
// over the devices among which the experts' width is divided. All parameters
// before them learn from a part of the loss.
TEST_F(VerifyMutationsTest, GradientsBelowExpertsLoseAReduction) {
  const std::string first =
      FirstDifference("t=2", "M=t", [](mlir::ModuleOp module) {
        module.walk([](dist::AllReduceOp reduce) {
          auto grad = reduce.getInput().getDefiningOp<nn::ExpertsGradOp>();
          if (grad && reduce.getInput() == grad.getXGrad())
            reduce.getResult().replaceAllUsesWith(reduce.getInput());
        });
      });
  EXPECT_THAT(unequal_, Contains("the gradient of in"));
  EXPECT_THAT(first, HasSubstr(" differs by "));
}

// Megatron-LM#5916: the norm of all gradients leaves out what other devices
// hold of experts that are divided twice.
TEST_F(VerifyMutationsTest, TheNormCountsOwnExpertsOnly) {
  const std::string first =
      FirstDifference("x=2,t=2", "X=x;M=t", [](mlir::ModuleOp module) {
        module.walk([](dist::AllReduceOp reduce) {
          if (llvm::cast<mlir::RankedTensorType>(reduce.getType())
                  .getNumElements() == 1)
            reduce.getResult().replaceAllUsesWith(reduce.getInput());
        });
      });
  EXPECT_THAT(first, HasSubstr(" differs by "));
}

// Megatron-LM#7452: each device takes its part of the logits for the first, and
// reads the targets' logits from the wrong one.
TEST_F(VerifyMutationsTest, TargetsAreSoughtInTheWrongPartOfTheLogits) {
  const std::string first =
      FirstDifference("t=2", "V=t", [](mlir::ModuleOp module) {
        module.walk([](dist::CoordinateOp coordinate) {
          ReplaceBy(coordinate.getResult(),
                    [&](mlir::OpBuilder& builder) -> Value {
                      auto zero = builder.getZeroAttr(coordinate.getType());
                      return mlir::arith::ConstantOp::create(
                          builder, coordinate.getLoc(), zero);
                    });
        });
      });
  EXPECT_THAT(unequal_, Contains("result 0"));
  EXPECT_THAT(first, HasSubstr(" differs by "));
}

// sglang#36438: a device loads only the first of the experts that it holds.
TEST_F(VerifyMutationsTest, HalfOfTheExpertsAreNotLoaded) {
  const std::string first =
      FirstDifference("t=2", "X=t", [](mlir::ModuleOp module) {
        module.walk([](nn::ExpertsOp experts) {
          const Value up = experts.getUp();
          mlir::OpBuilder builder(experts);
          const auto type = llvm::cast<mlir::RankedTensorType>(up.getType());
          llvm::SmallVector<float> loaded(type.getNumElements(), 0);
          std::fill(loaded.begin(), loaded.begin() + loaded.size() / 2, 1.0f);
          const Value mask = mlir::arith::ConstantOp::create(
              builder, experts.getLoc(),
              mlir::DenseElementsAttr::get(type, llvm::ArrayRef(loaded)));
          experts.getUpMutable().assign(
              mlir::arith::MulFOp::create(builder, experts.getLoc(), up, mask));
        });
      });
  EXPECT_THAT(first,
              AllOf(HasSubstr("nn.experts at "), HasSubstr("a sum over t")));
}

// All results of experts are taken from the first device, wherever their rows
// went.
TEST_F(VerifyMutationsTest, RowsReturnFromTheFirstDeviceOnly) {
  const std::string first =
      FirstDifference("d=2", "B=d;X=d", [](mlir::ModuleOp module) {
        module.walk([](dist::ReturnRowsOp back) {
          mlir::OpBuilder builder(back);
          back.getToMutable().assign(mlir::arith::ConstantOp::create(
              builder, back.getLoc(),
              builder.getZeroAttr(back.getTo().getType())));
        });
      });
  EXPECT_THAT(unequal_, Contains("result 0"));
  EXPECT_THAT(first, HasSubstr(" differs by "));
}

}  // namespace
}  // namespace partita::driver
