// Verify finds a training step whose division is broken on purpose.
#include "compiler/driver/registry.h"
#include "compiler/driver/verify/verify.h"
#include "dialects/dist/dialect.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"

namespace partita::driver {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kModel[] = R"(
func.func @main(%x: tensor<6x8xf32> {nn.kind = "input", nn.name = "x"},
    %up: tensor<8x16xf32> {nn.kind = "parameter", nn.name = "up", nn.source = #nn.init<"normal", 1.0 : f64, 0>},
    %bias: tensor<16xf32> {nn.kind = "parameter", nn.name = "bias", nn.source = #nn.init<"normal", 1.0 : f64, 1>}) -> tensor<6x16xf32> {
  %0 = nn.dot_general %x, %up contract = [1] x [0] : tensor<6x8xf32>, tensor<8x16xf32> -> tensor<6x16xf32>
  %1 = nn.broadcast %bias dims = [1] : tensor<16xf32> -> tensor<6x16xf32>
  %2 = arith.addf %0, %1 : tensor<6x16xf32>
  %3 = math.tanh %2 : tensor<6x16xf32>
  return %3 : tensor<6x16xf32>
}
)";

class VerifyGradientsTest : public testing::Test {
 protected:
  VerifyGradientsTest() : context_(Registry()) {}

  static mlir::DialectRegistry Registry() {
    mlir::DialectRegistry registry;
    registerDialects(registry);
    return registry;
  }

  llvm::json::Object Verify(std::function<void(mlir::ModuleOp)> breaking) {
    auto module = mlir::parseSourceString<mlir::ModuleOp>(kModel, &context_);
    plan::Plan plan;
    plan.mesh = *plan::ParseMeshOption("d=2");
    plan.shard = *plan::ParseShardOption("B=d", plan.mesh);
    VerifyOptions options;
    options.train.optimizer = "adamw";
    options.train.loss = "mse";
    options.breaking = std::move(breaking);
    auto facts = verifyPlan(*module, plan, options);
    EXPECT_TRUE(mlir::succeeded(facts));
    return mlir::succeeded(facts) ? *facts->getAsObject()
                                  : llvm::json::Object();
  }

  static std::vector<std::string> Unequal(const llvm::json::Object& facts) {
    std::vector<std::string> names;
    if (const llvm::json::Array* list = facts.getArray("unequal_results"))
      for (const llvm::json::Value& name : *list)
        names.push_back(name.getAsString()->str());
    return names;
  }

  mlir::MLIRContext context_;
};

TEST_F(VerifyGradientsTest, EqualWhereNothingIsBroken) {
  const llvm::json::Object facts = Verify({});
  EXPECT_EQ(facts.getBoolean("equal"), true);
  EXPECT_EQ(facts.getInteger("gradients"), 2);
  EXPECT_THAT(Unequal(facts), IsEmpty());
}

// Each device then has the gradient of its own part of the batch.
TEST_F(VerifyGradientsTest, AGradientThatIsNotReduced) {
  const llvm::json::Object facts = Verify([](mlir::ModuleOp module) {
    module.walk([](dist::AllReduceOp reduce) {
      if (llvm::cast<mlir::RankedTensorType>(reduce.getType()).getRank() == 2)
        reduce.getResult().replaceAllUsesWith(reduce.getInput());
    });
  });
  EXPECT_EQ(facts.getBoolean("equal"), false);
  EXPECT_THAT(facts.getString("first")->str(), HasSubstr(" differs by "));
  // One step at a small rate moves parameters by less than the tolerance.
  EXPECT_THAT(Unequal(facts),
              ElementsAre("the gradient of up", "up/exp_avg after the step"));
}

}  // namespace
}  // namespace partita::driver
