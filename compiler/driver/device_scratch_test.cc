// Scratch of single operations on a GPU, compared with sizes computed by hand.
#include "compiler/driver/device_scratch.h"

#include <string>
#include <vector>

#include "dialects/exec/dialect.h"
#include "gtest/gtest.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"

namespace partita::driver {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

class DeviceScratchTest : public testing::Test {
 protected:
  DeviceScratchTest() {
    context_.loadDialect<mlir::func::FuncDialect, exec::ExecDialect>();
  }
  int64_t Of(const std::string& body) {
    auto module = mlir::parseSourceString<mlir::ModuleOp>(
        "func.func private @k(%x: tensor<8x8xf32>) -> tensor<8x8xf32> "
        "attributes {exec.kernel} { return %x : tensor<8x8xf32> }\n"
        "func.func @main(%x: tensor<8x8xf32>, %i: tensor<1x5x5x4xbf16>, "
        "%w: tensor<2x4x3x3xbf16>, %o: tensor<1x3x3x2xbf16>) {\n" +
            body + "\nreturn\n}",
        &context_);
    EXPECT_TRUE(module);
    return module ? deviceScratch(*module) : -1;
  }
  int64_t Product(const std::string& residual, const std::string& activation) {
    return Of("%0 = exec.gemm %x, %x " + residual +
              "sizes = [1, 8, 8, 8] lhs_strides = [0, 8, 1] "
              "rhs_strides = [0, 8, 1] activation = " +
              activation +
              " : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>");
  }

  mlir::MLIRContext context_;
};

TEST_F(DeviceScratchTest, NothingTakesNothing) { EXPECT_EQ(Of(""), 0); }

TEST_F(DeviceScratchTest, ALaunchTakesWhatItSays) {
  EXPECT_EQ(Of("%0 = exec.launch @k(%x) {scratch = 4096 : i64, blocks = 2 : "
               "i64, threads = 32 : i64} : (tensor<8x8xf32>) -> "
               "tensor<8x8xf32>"),
            4096);
}

TEST_F(DeviceScratchTest, ProductsTakeSumsWhereTheLibraryDoesNotFinish) {
  const std::string residual = "residual(%x : tensor<8x8xf32>) ";
  EXPECT_EQ(Product("", "none"), 32 * kMiB);
  EXPECT_EQ(Product("", "gelu_tanh"), 32 * kMiB);
  EXPECT_EQ(Product(residual, "none"), 32 * kMiB);
  EXPECT_EQ(Product(residual, "relu"), 32 * kMiB + 256);
  EXPECT_EQ(Product("", "silu"), 32 * kMiB + 256);
}

TEST_F(DeviceScratchTest, ConvolutionsTakeTheWeightWhereItIsLaidOutAnew) {
  const std::string geometry =
      "strides = [2, 2] dilations = [1, 1] low = [1, 1] high = [1, 1] "
      "groups = 1 channels_last ";
  EXPECT_EQ(Of("%0 = exec.conv %i, %w " + geometry +
               ": (tensor<1x5x5x4xbf16>, tensor<2x4x3x3xbf16>) -> "
               "tensor<1x3x3x2xbf16>"),
            128 * kMiB + 256);
  EXPECT_EQ(Of("%0 = exec.conv %i, %o " + geometry +
               "direction = weight_grad : (tensor<1x5x5x4xbf16>, "
               "tensor<1x3x3x2xbf16>) -> tensor<2x4x3x3xbf16>"),
            128 * kMiB + 256);
}

// Each receiver has two slots, used in turn and as large as their largest
// tensor. Peer 1 receives three tensors, peer 2 receives one.
TEST_F(DeviceScratchTest, WhatIsSentTakesSlots) {
  auto module = mlir::parseSourceString<mlir::ModuleOp>(
      R"(func.func private @pass(%x: tensor<8x8xf32>) {
        exec.send %x axes = [0, 1, 3] peer = 1 : tensor<8x8xf32>
        return
      }
      func.func @main(%x: tensor<8x8xf32>, %y: tensor<8x9xf32>) {
        call @pass(%x) : (tensor<8x8xf32>) -> ()
        call @pass(%x) : (tensor<8x8xf32>) -> ()
        exec.send %y axes = [0, 1, 3] peer = 1 : tensor<8x9xf32>
        exec.send %x axes = [0, 1, 3] peer = 2 : tensor<8x8xf32>
        return
      }
      func.func @main.1() {
        return
      }
      func.func @main.2(%x: tensor<8x8xf32>) {
        call @pass(%x) : (tensor<8x8xf32>) -> ()
        return
      })",
      &context_);
  ASSERT_TRUE(module);
  EXPECT_EQ(transferSlots(*module),
            (std::vector<int64_t>{512 + 256 + 256, 0, 256}));
}

// Only data inputs count, and only if the step updates a stored tensor.
TEST_F(DeviceScratchTest, TheNextStepsDataIsThereToo) {
  context_.allowUnregisteredDialects();
  const auto bytes = [&](const std::string& result) {
    auto module = mlir::parseSourceString<mlir::ModuleOp>(
        R"(func.func @main(%x: tensor<8x8xf32>,
            %i: tensor<8x3xi64> {nn.kind = "input"},
            %rate: tensor<f32> {nn.kind = "input", nn.role = "learning_rate"},
            %w: tensor<4x4xf32> {nn.kind = "parameter", nn.name = "w"})
            -> (tensor<4x4xf32>)" +
            result + R"() {
          return %w : tensor<4x4xf32>
        }
        func.func @main.1(%y: tensor<5xbf16>) {
          return
        })",
        &context_);
    EXPECT_TRUE(module);
    return module ? nextInputs(*module) : std::vector<int64_t>();
  };
  EXPECT_EQ(bytes(" {nn.updates = \"w\"}"),
            (std::vector<int64_t>{8 * 8 * 4 + 8 * 3 * 8, 10}));
  EXPECT_EQ(bytes(""), (std::vector<int64_t>{0, 0}));
}

}  // namespace
}  // namespace partita::driver
