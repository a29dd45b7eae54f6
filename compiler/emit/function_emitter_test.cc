// Instructions of modules as the passes before leave them.
#include <gtest/gtest.h>

#include "compiler/emit/emit.h"
#include "dialects/exec/dialect.h"
#include "dialects/exec/kernel_parts.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"

namespace partita::emit {
namespace {

// The launch's maps are parameters of the kernel that bears its name alone.
TEST(FunctionEmitterTest, OfSeveralKernelsTheLastHasTheMaps) {
  mlir::MLIRContext context;
  context.loadDialect<mlir::func::FuncDialect, exec::ExecDialect>();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(R"(
!t = tensor<2x50x64xbf16>
func.func private @k(%x: !t) -> !t attributes {exec.kernel} {
  return %x : !t
}
func.func @main(%x: !t) -> !t attributes {exec.frame_bytes = 0 : i64} {
  %y = exec.launch @k(%x) {blocks = 8 : i64, threads = 128 : i64, scratch = 0 : i64,
    maps = [#exec.tensor_map<operand 0 offset 0 shape [2, 50, 64] strides [6400, 128] box [1, 50, 64]>],
    exec.offsets = array<i64: -1>} : (!t) -> !t
  return %y : !t
}
)",
                                                        &context);
  ASSERT_TRUE(module);
  exec::KernelPart before, last;
  before.code = "k_part_0";
  before.blocks = 3;
  last.code = "k";
  last.blocks = 8;
  exec::setKernelParts(module->lookupSymbol("k"), {before, last});
  auto parts = buildArtifact(*module, "code", {});
  ASSERT_TRUE(mlir::succeeded(parts));
  const program::Program& program = *program::GetProgram(parts->program.data());
  ASSERT_EQ(program.functions()->size(), 1u);
  const auto& body = *program.functions()->Get(0)->body();
  ASSERT_EQ(body.size(), 2u);
  const auto launch = [&](unsigned i) {
    return body.Get(i)->operation_as_Launch();
  };
  const auto name = [&](unsigned i) {
    return program.kernels()
        ->Get(static_cast<unsigned>(launch(i)->kernel()))
        ->name()
        ->str();
  };
  EXPECT_EQ(name(0), "k_part_0");
  EXPECT_EQ(launch(0)->grid()->Get(0), 3);
  EXPECT_TRUE(launch(0)->maps() == nullptr || launch(0)->maps()->size() == 0);
  EXPECT_EQ(name(1), "k");
  EXPECT_EQ(launch(1)->grid()->Get(0), 8);
  ASSERT_NE(launch(1)->maps(), nullptr);
  ASSERT_EQ(launch(1)->maps()->size(), 1u);
  EXPECT_EQ(launch(1)->maps()->Get(0)->strides()->Get(0), 6400);
}

}  // namespace
}  // namespace partita::emit
