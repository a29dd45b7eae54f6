// Compares code shared by kernels of several shapes with the interpreter.
#include "compiler/kernels/flat_kernels.h"

#include <string>

#include "compiler/kernels/codegen_fixture.h"
#include "dialects/nn/dialect.h"
#include "gtest/gtest.h"
#include "mlir/Parser/Parser.h"

namespace partita::kernels {
namespace {

// Adam's first moment and a step in bf16, for tensors of this shape.
std::string update(const std::string& name, const std::string& shape) {
  const std::string f32 = "tensor<" + shape + "xf32>",
                    bf16 = "tensor<" + shape + "xbf16>";
  return "func.func @" + name + "(%p: " + f32 + ", %g: " + bf16 +
         ", %m: " + f32 + ", %lr: tensor<f32>) -> (" + f32 + ", " + f32 + ", " +
         bf16 +
         ") {\n"
         "%c = arith.constant dense<0.9> : " +
         f32 +
         "\n"
         "%w = arith.extf %g : " +
         bf16 + " to " + f32 +
         "\n"
         "%d = arith.subf %w, %m : " +
         f32 +
         "\n"
         "%n = math.fma %c, %d, %w : " +
         f32 +
         "\n"
         "%h = arith.mulf %lr, %lr : tensor<f32>\n"
         "%r = nn.broadcast %h dims = [] : tensor<f32> -> " +
         f32 +
         "\n"
         "%z = arith.cmpf ogt, %n, %c : " +
         f32 +
         "\n"
         "%k = arith.select %z, %n, %w : tensor<" +
         shape + "xi1>, " + f32 +
         "\n"
         "%s = arith.mulf %k, %r : " +
         f32 +
         "\n"
         "%q = arith.subf %p, %s : " +
         f32 +
         "\n"
         "%o = arith.truncf %q : " +
         f32 + " to " + bf16 +
         "\n"
         "return %q, %n, %o : " +
         f32 + ", " + f32 + ", " + bf16 + "\n}\n";
}

TEST(FlatKernelsTest, OneCodeServesAllSizes) {
  const std::string others = update("a", "64") + update("b", "3x5x128") +
                             update("odd", "63") + update("c", "4096");
  for (const char* shape : {"64", "2x3x64", "192", "8192", "7x320"}) {
    auto kernel = CompiledKernel::fromText(others + update("k", shape),
                                           hostCodegenOptions(), true);
    ASSERT_TRUE(kernel) << shape;
    EXPECT_EQ(kernel->difference(1e-6, 1e-5), "") << shape;
  }
}

// Checks which kernels are alike, and their chunks.
TEST(FlatKernelsTest, Groups) {
  mlir::DialectRegistry registry;
  registry.insert<nn::NNDialect>();
  nn::registerExternalModels(registry);
  registerCodegenDialects(registry);
  mlir::MLIRContext context(registry);
  context.loadAllAvailableDialects();
  const std::string text = update("a", "4096") + update("b", "6x512") +
                           update("odd", "65") +
                           R"(
func.func @moves(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %0 = nn.transpose %x perm = [1, 0] : tensor<64x64xf32> -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}
func.func @sums(%x: tensor<64x64xf32>) -> tensor<64xf32> {
  %0 = nn.reduce sum %x dims = [1] : tensor<64x64xf32> -> tensor<64xf32>
  return %0 : tensor<64xf32>
}
func.func @rows(%x: tensor<64xf32>) -> tensor<64x64xf32> {
  %0 = nn.broadcast %x dims = [1] : tensor<64xf32> -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}
func.func @alone(%x: tensor<64xf32>) -> tensor<64xf32> {
  %0 = math.exp %x : tensor<64xf32>
  return %0 : tensor<64xf32>
}
func.func @other(%x: tensor<64xf32>) -> tensor<64xf32> {
  %0 = math.tanh %x : tensor<64xf32>
  return %0 : tensor<64xf32>
}
)";
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  ASSERT_TRUE(module);
  const std::vector<FlatGroup> groups =
      findFlatGroups(llvm::to_vector(module->getOps<mlir::func::FuncOp>()));
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0].chunk, 1024);
  ASSERT_EQ(groups[0].kernels.size(), 2u);
  EXPECT_EQ(groups[0].elements[0], 4096);
  EXPECT_EQ(groups[0].elements[1], 3072);
}

}  // namespace
}  // namespace partita::kernels
