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
        "%w: tensor<2x4x3x3xbf16>, %o: tensor<1x3x3x2xbf16>, "
        "%j: tensor<8x512x512x16xf32>, %v: tensor<16x16x1x1xf32>, "
        "%t: tensor<65x8xf32>, %s: tensor<16x16xf8E4M3FN>, "
        "%f: tensor<1xf32>, %bf32: tensor<16xf32>, "
        "%bbf16: tensor<16xbf16>) {\n" +
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

// A library may compute the attention, in at most 1 MiB.
TEST_F(DeviceScratchTest, AttentionTakesTheWorkspaceOfALibrary) {
  const auto launch = [&](int64_t scratch) {
    return Of("%0 = exec.launch @k(%x) {scratch = " + std::to_string(scratch) +
              " : i64, blocks = 2 : i64, threads = 32 : i64, exec.attention = "
              "{batch = 1 : i64, heads = 1 : i64, groups = 1 : i64, queries = "
              "8 : i64, keys = 8 : i64, size = 8 : i64, value_size = 8 : i64, "
              "lse = -1 : i64, scale = 1.0 : f64, q = array<i64: 0, 0, 0, 0, "
              "8>, k = array<i64: 0, 0, 0, 0, 8>, v = array<i64: 0, 0, 0, 0, "
              "8>, out = array<i64: 1, 0, 0, 0, 8>}} : (tensor<8x8xf32>) -> "
              "tensor<8x8xf32>");
  };
  EXPECT_EQ(launch(4096), kMiB);
  EXPECT_EQ(launch(2 * kMiB), 2 * kMiB);
}

TEST_F(DeviceScratchTest, ProductsTakeSumsWhereTheLibraryDoesNotFinish) {
  const std::string residual = "residual(%x : tensor<8x8xf32>) ";
  EXPECT_EQ(Product("", "none"), 32 * kMiB);
  EXPECT_EQ(Product(residual, "none"), 32 * kMiB);
  EXPECT_EQ(Product(residual, "relu"), 32 * kMiB + 256);
  EXPECT_EQ(Product("", "silu"), 32 * kMiB + 256);
  // A version of the library may refuse these, and sums of a factor: here two
  // parts of 8 sums each.
  EXPECT_EQ(Product("", "gelu_tanh"), 32 * kMiB + 256);
  EXPECT_EQ(Product("preactivation(%x : tensor<8x8xf32>) ", "gelu_tanh"),
            32 * kMiB + 256);
  EXPECT_EQ(Of("%0, %1 = exec.gemm %t, %t sizes = [1, 8, 8, 65] lhs_strides = "
               "[0, 1, 8] rhs_strides = [0, 8, 1] : (tensor<65x8xf32>, "
               "tensor<65x8xf32>) -> tensor<8x8xf32> rhs_sums tensor<8xf32>"),
            32 * kMiB + 2 * 8 * 4);
}

// The library adds a bias to such factors only if it has 16 bits.
TEST_F(DeviceScratchTest, SmallFloatsWithAWideBiasTakeSums) {
  const auto with_bias = [&](const std::string& type) {
    return Of("%0 = exec.gemm %s, %s scale(%f : tensor<1xf32>) bias(%b" + type +
              " : tensor<16x" + type +
              ">) sizes = [1, 16, 16, 16] lhs_strides = [0, 16, 1] "
              "rhs_strides = [0, 1, 16] : (tensor<16x16xf8E4M3FN>, "
              "tensor<16x16xf8E4M3FN>) -> tensor<16x16x" +
              type + ">");
  };
  EXPECT_EQ(with_bias("bf16"), 32 * kMiB);
  EXPECT_EQ(with_bias("f32"), 32 * kMiB + 16 * 16 * 4);
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

// Libraries copy the tensors of large ones: here twice 128 MiB and a KiB.
TEST_F(DeviceScratchTest, LargeConvolutionsTakeCopiesOfTheirTensors) {
  EXPECT_EQ(Of("%0 = exec.conv %j, %v strides = [1, 1] dilations = [1, 1] low "
               "= [0, 0] high = [0, 0] groups = 1 channels_last : "
               "(tensor<8x512x512x16xf32>, tensor<16x16x1x1xf32>) -> "
               "tensor<8x512x512x16xf32>"),
            (2 * 128 + 16) * kMiB + 1024);
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

// Groups of the same axes share buffers; started collectives have their own.
// The gather packs 112 bytes of output and, on the member whose block is not
// full, 3 times 32 bytes of input, each part with up to 16 bytes of alignment.
TEST_F(DeviceScratchTest, CollectivesTakeBuffersByGroup) {
  auto module = mlir::parseSourceString<mlir::ModuleOp>(
      R"(func.func private @layer(%x: tensor<4x2xf32>) {
        %0 = exec.collective all_reduce %x axes = [0, 1, 4] : tensor<4x2xf32> -> tensor<4x2xf32>
        %1 = exec.collective all_gather %x axes = [0, 1, 4] {dim = 1 : i64} : tensor<4x2xf32> -> tensor<4x7xf32>
        return
      }
      func.func @main(%x: tensor<4x2xf32>) {
        call @layer(%x) : (tensor<4x2xf32>) -> ()
        call @layer(%x) : (tensor<4x2xf32>) -> ()
        return
      }
      func.func @main.1(%x: tensor<4x2xf32>) {
        call @layer(%x) : (tensor<4x2xf32>) -> ()
        %0 = exec.collective all_reduce %x axes = [0, 1, 4] {token = 1 : i64} : tensor<4x2xf32> -> tensor<4x2xf32>
        %1 = exec.await %0, %x token = 1 : tensor<4x2xf32>, tensor<4x2xf32>
        %2 = exec.collective all_reduce %x axes = [1, 1, 2] : tensor<4x2xf32> -> tensor<4x2xf32>
        %3 = exec.receive axes = [2, 1, 3] peer = 0 : tensor<4x2xf32>
        %4 = exec.receive axes = [2, 1, 3] peer = 0 : tensor<4x2xf32>
        return
      }
      func.func @main.2(%x: tensor<4x2xf32>) {
        %0 = exec.collective all_reduce %x axes = [] : tensor<4x2xf32> -> tensor<4x2xf32>
        exec.send %x axes = [2, 1, 3] peer = 1 : tensor<4x2xf32>
        return
      })",
      &context_);
  ASSERT_TRUE(module);
  constexpr int64_t kGroup = 231211008, kGather = 112 + 3 * 32 + 8 * 16;
  EXPECT_EQ(exchangeBuffers(*module),
            (std::vector<int64_t>{kGroup + kGather, 4 * kGroup + kGather, 0}));
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
