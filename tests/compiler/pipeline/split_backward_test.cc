// A step with split backward calls gives the same results, bit for bit, and
// computes no product twice.
#include "compiler/autodiff/call_marks.h"
#include "compiler/driver/model_phases.h"
#include "compiler/pipeline/passes.h"
#include "dialects/nn/interpreter.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "tests/compiler/pipeline/step_fixture.h"
#include "tests/compiler/simplify/evaluate.h"

namespace partita::pipeline {
namespace {

using llvm::SmallVector;
using mlir::func::CallOp;
using mlir::func::FuncOp;

// Norm, attention with two heads and a gated layer. Unmarked operations are
// between two of them.
constexpr char kModel[] = R"(
func.func private @block(%x: tensor<2x3x8xf32>, %g: tensor<8xf32>, %b: tensor<8xf32>,
                         %q: tensor<8x8xf32>, %k: tensor<8x8xf32>, %v: tensor<8x8xf32>, %o: tensor<8x8xf32>,
                         %u: tensor<8x8xf32>) -> tensor<2x3x8xf32> {
  %n = nn.layer_norm %x scale(%g : tensor<8xf32>) bias(%b : tensor<8xf32>) axis = 2 epsilon = 1.0e-05 : tensor<2x3x8xf32>
  %0 = nn.dot_general %n, %q contract = [2] x [0] : tensor<2x3x8xf32>, tensor<8x8xf32> -> tensor<2x3x8xf32>
  %1 = nn.dot_general %n, %k contract = [2] x [0] : tensor<2x3x8xf32>, tensor<8x8xf32> -> tensor<2x3x8xf32>
  %2 = nn.dot_general %n, %v contract = [2] x [0] : tensor<2x3x8xf32>, tensor<8x8xf32> -> tensor<2x3x8xf32>
  %3 = nn.reshape %0 : tensor<2x3x8xf32> -> tensor<2x3x2x4xf32>
  %4 = nn.reshape %1 : tensor<2x3x8xf32> -> tensor<2x3x2x4xf32>
  %5 = nn.reshape %2 : tensor<2x3x8xf32> -> tensor<2x3x2x4xf32>
  %6 = nn.transpose %3 perm = [0, 2, 1, 3] : tensor<2x3x2x4xf32> -> tensor<2x2x3x4xf32>
  %7 = nn.transpose %4 perm = [0, 2, 1, 3] : tensor<2x3x2x4xf32> -> tensor<2x2x3x4xf32>
  %8 = nn.transpose %5 perm = [0, 2, 1, 3] : tensor<2x3x2x4xf32> -> tensor<2x2x3x4xf32>
  %9 = nn.attention %6, %7, %8 scale = 5.0e-01 causal_offset = 0 : (tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>) -> tensor<2x2x3x4xf32>
  %10 = nn.transpose %9 perm = [0, 2, 1, 3] : tensor<2x2x3x4xf32> -> tensor<2x3x2x4xf32>
  %11 = nn.reshape %10 : tensor<2x3x2x4xf32> -> tensor<2x3x8xf32>
  %12 = nn.dot_general %11, %o contract = [2] x [0] : tensor<2x3x8xf32>, tensor<8x8xf32> -> tensor<2x3x8xf32>
  %13 = arith.addf %x, %12 : tensor<2x3x8xf32>
  %14 = nn.dot_general %13, %u contract = [2] x [0] : tensor<2x3x8xf32>, tensor<8x8xf32> -> tensor<2x3x8xf32>
  %15 = math.tanh %14 : tensor<2x3x8xf32>
  %16 = arith.mulf %15, %13 : tensor<2x3x8xf32>
  return %16 : tensor<2x3x8xf32>
}
func.func @main(%x: tensor<2x3x8xf32> {nn.kind = "input", nn.name = "x", nn.dims = ["B", "L", "E"]}, PARAMETERS)
    -> (tensor<f32> {nn.name = "loss"}) {
  %bias = nn.broadcast %b dims = [2] : tensor<8xf32> -> tensor<2x3x8xf32>
  %e = arith.addf %x, %bias : tensor<2x3x8xf32>
  %0 = call @block(%e, %g, %b, %q, %k, %v, %o, %u) : (tensor<2x3x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<2x3x8xf32>
  %1 = nn.dot_general %0, %k contract = [2] x [0] : tensor<2x3x8xf32>, tensor<8x8xf32> -> tensor<2x3x8xf32>
  %2 = call @block(%1, %g, %b, %k, %q, %v, %o, %u) : (tensor<2x3x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<2x3x8xf32>
  %3 = arith.mulf %2, %0 : tensor<2x3x8xf32>
  %4 = nn.reduce sum %3 dims = [0, 1, 2] : tensor<2x3x8xf32> -> tensor<f32>
  return %4 : tensor<f32>
}
)";

std::string modelText() {
  std::string parameters;
  for (auto [name, shape] : {std::pair("g", "8"),
                             {"b", "8"},
                             {"q", "8x8"},
                             {"k", "8x8"},
                             {"v", "8x8"},
                             {"o", "8x8"},
                             {"u", "8x8"}})
    parameters += std::string(parameters.empty() ? "%" : ", %") + name +
                  ": tensor<" + shape +
                  "xf32> {nn.kind = \"parameter\", nn.name = \"" + name + "\"}";
  std::string text = kModel;
  const std::string place = "PARAMETERS";
  return text.replace(text.find(place), place.size(), parameters);
}

class SplitBackwardTest : public StepTest {
 protected:
  mlir::OwningOpRef<mlir::ModuleOp> differentiated(plan::Precision precision) {
    auto module =
        mlir::parseSourceString<mlir::ModuleOp>(modelText(), &context_);
    EXPECT_TRUE(module);
    driver::TrainOptions train;
    train.optimizer = "adamw";
    train.keep_gradients = true;
    train.microbatches = 2;
    std::vector<driver::Phase> phases =
        driver::reducePrecision(precision, &train);
    phases.push_back(driver::trainModel(train));
    for (const driver::Phase& phase : phases) {
      mlir::PassManager passes(&context_);
      phase.build(passes);
      EXPECT_TRUE(succeeded(passes.run(*module))) << phase.name;
    }
    return module;
  }

  void split(mlir::ModuleOp module) {
    mlir::PassManager passes(&context_);
    passes.addPass(createSplitBackwardPass());
    ASSERT_TRUE(succeeded(passes.run(module)));
    ASSERT_TRUE(succeeded(mlir::verify(module)));
  }

  // Number of products that a step computes.
  static int products(mlir::ModuleOp module) {
    mlir::SymbolTable symbols(module);
    int count = 0;
    for (CallOp call : module.lookupSymbol<FuncOp>("main").getOps<CallOp>())
      symbols.lookup<FuncOp>(call.getCallee()).walk([&](mlir::Operation* op) {
        count +=
            llvm::isa<nn::DotGeneralOp, nn::AttentionOp, nn::AttentionGradOp>(
                op);
      });
    return count;
  }
};

bool isOf(mlir::Operation* op, const char* part) {
  return textOf(op->getAttr(autodiff::kBackwardAttr)) == part;
}

TEST_F(SplitBackwardTest, SameBits) {
  for (plan::Precision precision :
       {plan::Precision::kF32, plan::Precision::kBF16, plan::Precision::kF16}) {
    auto module = differentiated(precision);
    const Results expected = run(*module);
    const int before = products(*module);
    split(*module);
    EXPECT_EQ(products(*module), before);
    const Results actual = run(*module);
    ASSERT_EQ(actual.size(), expected.size());
    for (const auto& [name, tensor] : expected)
      EXPECT_EQ(actual.at(name).toBytes(), tensor.toBytes()) << name;
  }
}

// The computation of weight gradients leads to no other gradients, and contains
// every product for a weight gradient.
TEST_F(SplitBackwardTest, NobodyWaitsForWeights) {
  auto module = differentiated(plan::Precision::kF32);
  split(*module);
  int inputs = 0, weights = 0;
  llvm::DenseSet<mlir::Operation*> behind;  // depend on weight calls
  for (mlir::Operation& op : module->lookupSymbol<FuncOp>("main").front()) {
    for (mlir::Value operand : op.getOperands())
      if (mlir::Operation* producer = operand.getDefiningOp();
          producer && (behind.contains(producer) ||
                       isOf(producer, autodiff::kWeightGradients)))
        behind.insert(&op);
    if (op.hasAttr(autodiff::kBackwardAttr))
      EXPECT_FALSE(behind.contains(&op)) << textOf(op.getAttr("callee"));
    inputs += isOf(&op, autodiff::kInputGradients);
    weights += isOf(&op, autodiff::kWeightGradients);
  }
  // For each of two microbatches: the loss, two blocks, and the product and
  // bias between and before them. The bias has no input that needs a gradient.
  EXPECT_EQ(inputs, 2 * 4);
  EXPECT_EQ(weights, 2 * 4);
}

}  // namespace
}  // namespace partita::pipeline
