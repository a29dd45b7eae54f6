// Instructions of modules in the form in which earlier passes leave them.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "compiler/emit/emit.h"
#include "dialects/exec/dialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"

namespace partita::emit {
namespace {

class FunctionEmitterTest : public testing::Test {
 protected:
  FunctionEmitterTest() {
    context_.loadDialect<mlir::arith::ArithDialect, mlir::func::FuncDialect,
                         exec::ExecDialect>();
  }

  // Returns false if the module is refused; otherwise `bytes_` is its program.
  bool Emit(const std::string& text) {
    module_ = mlir::parseSourceString<mlir::ModuleOp>(text, &context_);
    if (!module_) return false;
    auto parts = buildArtifact(*module_, "code", {});
    if (mlir::failed(parts)) return false;
    bytes_ = parts->program;
    return true;
  }

  const program::Program& Program() const {
    return *program::GetProgram(bytes_.data());
  }
  const program::Instruction& At(unsigned i) const {
    return *Program().functions()->Get(0)->body()->Get(i);
  }
  std::string KernelOf(const program::Launch& launch) const {
    return Program()
        .kernels()
        ->Get(static_cast<unsigned>(launch.kernel()))
        ->name()
        ->str();
  }
  // "argument 0", "frame 64".
  static std::vector<std::string> PlacesOf(
      const program::Instruction& instruction) {
    std::vector<std::string> places;
    for (const program::Buffer* buffer : *instruction.operands())
      places.push_back(std::string(program::EnumNameSpace(buffer->space())) +
                       " " + std::to_string(buffer->value()));
    return places;
  }

  mlir::MLIRContext context_;
  mlir::OwningOpRef<mlir::ModuleOp> module_;
  std::string bytes_;
};

using Strings = std::vector<std::string>;

TEST_F(FunctionEmitterTest, LaunchesGoOnWithResults) {
  ASSERT_TRUE(Emit(R"(
!t = tensor<2x50x64xbf16>
func.func private @k(%x: !t) -> !t attributes {exec.kernel} {
  return %x : !t
}
func.func private @k_part_0(!t) -> !t attributes {exec.kernel}
func.func @main(%x: !t) -> !t attributes {exec.frame_bytes = 0 : i64} {
  %0 = exec.launch @k_part_0(%x) {blocks = 3 : i64, threads = 128 : i64, scratch = 64 : i64, operations = 7 : i64, unread = -9 : i64,
    exec.offsets = array<i64: -1>} : (!t) -> !t
  %1 = exec.launch @k(%x) into(%0 : !t) {blocks = 8 : i64, threads = 128 : i64, scratch = 0 : i64,
    maps = [#exec.tensor_map<operand 0 offset 0 shape [2, 50, 64] strides [6400, 128] box [1, 50, 64]>]} : (!t) -> !t
  return %1 : !t
}
)"));
  ASSERT_EQ(Program().functions()->size(), 1u);
  ASSERT_EQ(Program().functions()->Get(0)->body()->size(), 2u);
  for (unsigned i : {0, 1}) {
    EXPECT_EQ(PlacesOf(At(i)), (Strings{"argument 0", "argument 1"}));
    EXPECT_EQ(At(i).outputs(), 1);
    EXPECT_EQ(At(i).output_types()->size(), 1u);
  }
  const program::Launch& first = *At(0).operation_as_Launch();
  EXPECT_EQ(KernelOf(first), "k_part_0");
  EXPECT_EQ(first.grid()->Get(0), 3);
  EXPECT_EQ(first.scratch_bytes(), 64);
  EXPECT_EQ(first.operations(), 7);
  EXPECT_EQ(first.unread_bytes(), -9);
  EXPECT_TRUE(first.maps() == nullptr || first.maps()->size() == 0);
  const program::Launch& second = *At(1).operation_as_Launch();
  EXPECT_EQ(KernelOf(second), "k");
  EXPECT_EQ(second.grid()->Get(0), 8);
  ASSERT_NE(second.maps(), nullptr);
  ASSERT_EQ(second.maps()->size(), 1u);
  EXPECT_EQ(second.maps()->Get(0)->strides()->Get(0), 6400);
}

TEST_F(FunctionEmitterTest, PiecesOnGpus) {
  ASSERT_TRUE(Emit(R"(
func.func private @k_0(%x: tensor<8xf32>) -> tensor<8xf32> attributes {exec.kernel = "k"} { return %x : tensor<8xf32> }
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> attributes {exec.frame_bytes = 0 : i64} {
  %0 = exec.launch_pieces [@k_0](%x) ranges = [5] {grain = 1 : i64, scratch = 0 : i64, blocks = 3 : i64, threads = 128 : i64,
    exec.offsets = array<i64: -1>} : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
)"));
  const program::Launch& launch = *At(0).operation_as_Launch();
  ASSERT_EQ(launch.ranges()->size(), 1u);
  EXPECT_EQ(launch.ranges()->Get(0), 5);
  EXPECT_EQ(launch.grid()->Get(0), 3);
  EXPECT_EQ(launch.block()->Get(0), 128);
}

TEST_F(FunctionEmitterTest, PiecesAndCopies) {
  ASSERT_TRUE(Emit(R"(
func.func private @k_0(%x: tensor<8xf32>) -> tensor<8xf32> attributes {exec.kernel = "k"} { return %x : tensor<8xf32> }
func.func private @k_1(%x: tensor<4xf32>) -> tensor<4xf32> attributes {exec.kernel = "k"} { return %x : tensor<4xf32> }
func.func @main(%x: tensor<8xf32>, %y: tensor<4xf32>) -> (tensor<8xf32>, tensor<4xf32>) attributes {exec.frame_bytes = 64 : i64} {
  %0:2 = exec.launch_pieces [@k_0, @k_1](%x, %y) ranges = [8, 4] {grain = 2 : i64, scratch = 64 : i64, operations = 5 : i64, unread = 6 : i64,
    exec.offsets = array<i64: -1, 0>} : (tensor<8xf32>, tensor<4xf32>) -> (tensor<8xf32>, tensor<4xf32>) loc("all")
  %1 = exec.copy %0#1 {exec.offsets = array<i64: -2>} : tensor<4xf32> loc("copy of result 1")
  return %0#0, %1 : tensor<8xf32>, tensor<4xf32>
}
)"));
  ASSERT_EQ(Program().functions()->Get(0)->body()->size(), 2u);
  const program::Launch& launch = *At(0).operation_as_Launch();
  EXPECT_EQ(KernelOf(launch), "k");
  EXPECT_EQ(launch.range(), 12);
  ASSERT_EQ(launch.ranges()->size(), 2u);
  EXPECT_EQ(launch.ranges()->Get(0), 8);
  EXPECT_EQ(launch.ranges()->Get(1), 4);
  EXPECT_EQ(launch.grain(), 2);
  EXPECT_EQ(launch.scratch_bytes(), 64);
  EXPECT_EQ(launch.operations(), 5);
  EXPECT_EQ(launch.unread_bytes(), 6);
  EXPECT_EQ(At(0).name()->str(), "all");
  EXPECT_EQ(At(0).outputs(), 2);
  EXPECT_EQ(PlacesOf(At(0)),
            (Strings{"argument 0", "argument 1", "argument 2", "frame 0"}));
  EXPECT_NE(At(1).operation_as_Copy(), nullptr);
  EXPECT_EQ(At(1).name()->str(), "copy of result 1");
  EXPECT_EQ(PlacesOf(At(1)), (Strings{"frame 0", "argument 3"}));
}

TEST_F(FunctionEmitterTest, ResultsElsewhereAreRefused) {
  std::string message;
  mlir::ScopedDiagnosticHandler handler(&context_,
                                        [&](mlir::Diagnostic& diagnostic) {
                                          message = diagnostic.str();
                                          return mlir::success();
                                        });
  EXPECT_FALSE(Emit(R"(
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> attributes {exec.frame_bytes = 0 : i64} {
  return %x : tensor<8xf32>
}
)"));
  EXPECT_NE(message.find("expected result 0 in the caller's memory, where "
                         "partita-copy-returned copies it"),
            std::string::npos)
      << message;
}

TEST_F(FunctionEmitterTest, LaunchesSayWhatAttentionTheyCompute) {
  ASSERT_TRUE(Emit(R"(
!q = tensor<1x2x4x8xbf16>
!k = tensor<1x1x6x8xbf16>
!l = tensor<1x2x4xf32>
func.func private @k(%q: !q, %k: !k) -> (!q, !l) attributes {exec.kernel} {
  %l = arith.constant dense<0.0> : !l
  return %q, %l : !q, !l
}
func.func @main(%q: !q, %k: !k) -> (!q, !l) attributes {exec.frame_bytes = 0 : i64} {
  %0:2 = exec.launch @k(%q, %k) {blocks = 3 : i64, threads = 128 : i64, scratch = 0 : i64, exec.offsets = array<i64: -1, -2>,
    exec.attention = {batch = 1 : i64, heads = 2 : i64, groups = 1 : i64, queries = 4 : i64, keys = 6 : i64, size = 8 : i64,
      value_size = 8 : i64, scale = 0.5, causal_offset = 2 : i64, lse = 3 : i64, q = array<i64: 0, 0, 64, 32, 8>,
      k = array<i64: 1, 0, 48, 48, 8>, v = array<i64: 1, 0, 48, 48, 8>, out = array<i64: 2, 0, 64, 8, 16>}} : (!q, !k) -> (!q, !l)
  return %0#0, %0#1 : !q, !l
}
)"));
  const program::Attention* const attention =
      At(0).operation_as_Launch()->attention();
  ASSERT_NE(attention, nullptr);
  EXPECT_EQ(attention->dtype(), program::DType::bf16);
  EXPECT_EQ(attention->heads(), 2);
  EXPECT_EQ(attention->groups(), 1);
  EXPECT_EQ(attention->queries(), 4);
  EXPECT_EQ(attention->keys(), 6);
  EXPECT_EQ(attention->size(), 8);
  EXPECT_EQ(attention->scale(), 0.5);
  EXPECT_TRUE(attention->causal());
  EXPECT_EQ(attention->causal_offset(), 2);
  EXPECT_EQ(attention->k()->operand(), 1);
  EXPECT_EQ(attention->out()->head(), 8);
  EXPECT_EQ(attention->out()->position(), 16);
  EXPECT_EQ(attention->lse(), 3);
}

}  // namespace
}  // namespace partita::emit
