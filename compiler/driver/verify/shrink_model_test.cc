#include "compiler/driver/verify/shrink_model.h"

#include <gtest/gtest.h>

#include "compiler/driver/registry.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

namespace partita::driver {
namespace {

using mlir::func::CallOp;
using mlir::func::FuncOp;

class ShrinkModelTest : public testing::Test {
 protected:
  ShrinkModelTest() : context_(mlir::MLIRContext::Threading::DISABLED) {
    mlir::DialectRegistry registry;
    registerDialects(registry);
    context_.appendDialectRegistry(registry);
    context_.loadAllAvailableDialects();
  }

  mlir::OwningOpRef<mlir::ModuleOp> parse(const std::string& text) {
    return mlir::parseSourceString<mlir::ModuleOp>(text, &context_);
  }

  // The number of operations of type Op in @main.
  template <typename Op>
  static int64_t count(mlir::ModuleOp module) {
    auto ops = module.lookupSymbol<FuncOp>("main").getOps<Op>();
    return std::distance(ops.begin(), ops.end());
  }

  mlir::MLIRContext context_;
};

bool allAlike(llvm::StringRef, llvm::StringRef) { return true; }

// `layers` times x + tanh(x @ w) * (x @ w): enough operations to be worth a
// function.
std::string flatModel(int layers) {
  std::string text = "func.func @main(%x0: tensor<2x4xf32>";
  for (int i = 0; i < layers; ++i)
    text += ", %w" + std::to_string(i) +
            ": tensor<4x4xf32> {nn.kind = \"parameter\", nn.name = \"h." +
            std::to_string(i) + ".weight\"}";
  text += ") -> tensor<2x4xf32> {\n";
  const std::string type = " : tensor<2x4xf32>\n";
  for (int i = 0; i < layers; ++i) {
    const std::string n = std::to_string(i);
    text += "%d" + n + " = nn.dot_general %x" + n + ", %w" + n +
            " contract = [1] x [0] : tensor<2x4xf32>, tensor<4x4xf32> -> "
            "tensor<2x4xf32>\n%t" +
            n + " = math.tanh %d" + n + type + "%m" + n + " = arith.mulf %t" +
            n + ", %d" + n + type + "%x" + std::to_string(i + 1) +
            " = arith.addf %m" + n + ", %x" + n + type;
  }
  const std::string last = std::to_string(layers);
  return text + "return %x" + last + " : tensor<2x4xf32>\n}";
}

TEST_F(ShrinkModelTest, RepeatsOfAFlatModelGo) {
  auto module = parse(flatModel(6));
  ASSERT_TRUE(module);
  auto dropped = dropRepeatedLayers(*module, 2, allAlike);
  ASSERT_TRUE(succeeded(dropped));
  EXPECT_EQ(*dropped, 4);
  EXPECT_TRUE(succeeded(mlir::verify(*module)));
  EXPECT_EQ(count<mlir::func::CallOp>(*module), 0);
  auto main = module->lookupSymbol<FuncOp>("main");
  int64_t tangents = 0;
  main.walk([&](mlir::Operation* op) {
    tangents += op->getName().getStringRef() == "math.tanh";
  });
  EXPECT_EQ(tangents, 2);
  // Plans may name weights that are unused now.
  EXPECT_EQ(main.getNumArguments(), 7u);
  EXPECT_FALSE(main.getArgument(2).use_empty());
  EXPECT_TRUE(main.getArgument(3).use_empty());
}

// Layer 3 stays, because the plan treats its weight differently.
TEST_F(ShrinkModelTest, LayersThatAreToldApartStay) {
  auto module = parse(flatModel(6));
  ASSERT_TRUE(module);
  auto dropped =
      dropRepeatedLayers(*module, 2, [](llvm::StringRef a, llvm::StringRef b) {
        return (a == "h.3.weight") == (b == "h.3.weight");
      });
  ASSERT_TRUE(succeeded(dropped));
  EXPECT_EQ(*dropped, 2);
  auto main = module->lookupSymbol<FuncOp>("main");
  std::vector<bool> used;
  for (mlir::Value argument : main.getArguments())
    used.push_back(!argument.use_empty());
  EXPECT_EQ(used,
            (std::vector<bool>{true, true, true, false, true, true, false}));
}

TEST_F(ShrinkModelTest, FunctionsOfTheModelStay) {
  auto module = parse(R"(
    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = call @h(%x) : (tensor<4xf32>) -> tensor<4xf32>
      %1 = call @h(%0) : (tensor<4xf32>) -> tensor<4xf32>
      %2 = call @h(%1) : (tensor<4xf32>) -> tensor<4xf32>
      %3 = call @h(%2) : (tensor<4xf32>) -> tensor<4xf32>
      return %3 : tensor<4xf32>
    }
    func.func private @h(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = math.tanh %x : tensor<4xf32>
      return %0 : tensor<4xf32>
    })");
  ASSERT_TRUE(module);
  EXPECT_EQ(workOf(*module), 4 * (4 + 4));
  auto dropped = dropRepeatedLayers(*module, 2, allAlike);
  ASSERT_TRUE(succeeded(dropped));
  EXPECT_EQ(*dropped, 2);
  EXPECT_EQ(count<CallOp>(*module), 2);
  EXPECT_EQ(workOf(*module), 2 * (4 + 4));
}

// Two towers: neither call feeds the other, so each has its own work.
TEST_F(ShrinkModelTest, CallsSideBySideStay) {
  auto module = parse(R"(
    func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>, %z: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
      %0 = call @h(%x) : (tensor<4xf32>) -> tensor<4xf32>
      %1 = call @h(%y) : (tensor<4xf32>) -> tensor<4xf32>
      %2 = call @h(%z) : (tensor<4xf32>) -> tensor<4xf32>
      return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
    }
    func.func private @h(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = math.tanh %x : tensor<4xf32>
      return %0 : tensor<4xf32>
    })");
  ASSERT_TRUE(module);
  auto dropped = dropRepeatedLayers(*module, 1, allAlike);
  ASSERT_TRUE(succeeded(dropped));
  EXPECT_EQ(*dropped, 0);
  EXPECT_EQ(count<CallOp>(*module), 3);
}

TEST_F(ShrinkModelTest, ProductsCountTheirMultiplications) {
  auto module = parse(R"(
    func.func @main(%x: tensor<2x3xf32>, %w: tensor<3x5xf32>) -> tensor<2x5xf32> {
      %0 = nn.dot_general %x, %w contract = [1] x [0] : tensor<2x3xf32>, tensor<3x5xf32> -> tensor<2x5xf32>
      return %0 : tensor<2x5xf32>
    })");
  ASSERT_TRUE(module);
  EXPECT_EQ(workOf(*module), 2 * 3 * 5);
}

}  // namespace
}  // namespace partita::driver
