// Compiles mixtures of experts and their gradients for the CPU, whose library
// computes the grouped products, and compares them with the interpreter.
#include <gtest/gtest.h>

#include "dialects/nn/interpreter.h"
#include "llvm/ADT/StringExtras.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"
#include "tests/e2e/compiled_model.h"

namespace partita::e2e {
namespace {

constexpr char kForward[] = R"(
func.func @main(%x: tensor<2x9x16xf32>, %ids: tensor<2x9x2xi64>, %p: tensor<2x9x2xf32>, %g: tensor<4x24x16xf32>, %u: tensor<4x24x16xf32>, %d: tensor<4x16x24xf32>) -> tensor<2x9x16xf32> {
  %y = nn.experts %x[%ids], %p gate(%g : tensor<4x24x16xf32>) up(%u : tensor<4x24x16xf32>) down(%d : tensor<4x16x24xf32>) activation = silu : tensor<2x9x16xf32>, tensor<2x9x2xi64>, tensor<2x9x2xf32> -> tensor<2x9x16xf32>
  return %y : tensor<2x9x16xf32>
})";

constexpr char kBackward[] = R"(
func.func @main(%x: tensor<2x9x16xf32>, %ids: tensor<2x9x2xi32>, %p: tensor<2x9x2xf32>, %y: tensor<2x9x16xf32>, %g: tensor<4x24x16xf32>, %u: tensor<4x24x16xf32>, %d: tensor<4x16x24xf32>) -> (tensor<2x9x16xf32>, tensor<2x9x2xf32>, tensor<4x24x16xf32>, tensor<4x24x16xf32>, tensor<4x16x24xf32>) {
  %dx, %dp, %dg, %du, %dd = nn.experts_grad %x[%ids], %p, %y gate(%g : tensor<4x24x16xf32>) up(%u : tensor<4x24x16xf32>) down(%d : tensor<4x16x24xf32>) activation = gelu : tensor<2x9x16xf32>, tensor<2x9x2xi32>, tensor<2x9x2xf32>, tensor<2x9x16xf32> -> tensor<2x9x16xf32>, tensor<2x9x2xf32>, tensor<4x24x16xf32>, tensor<4x24x16xf32>, tensor<4x16x24xf32>
  return %dx, %dp, %dg, %du, %dd : tensor<2x9x16xf32>, tensor<2x9x2xf32>, tensor<4x24x16xf32>, tensor<4x24x16xf32>, tensor<4x16x24xf32>
})";

// Floats in [-0.5, 0.5), and indices of experts and one outside on either side.
nn::Tensor MadeUp(mlir::RankedTensorType type, int64_t seed) {
  nn::Tensor tensor(type);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const int64_t number = (i * 37 + seed * 11) % 101;
    if (tensor.isFloat())
      tensor.setFloat(i, static_cast<double>(number) / 101 - 0.5);
    else
      tensor.setInt(i, number % 6 - 1);
  }
  return tensor;
}

HostTensor ToHost(const nn::Tensor& tensor, base::DType dtype) {
  const std::vector<char> bytes = tensor.toBytes();
  return {dtype,
          {tensor.shape().begin(), tensor.shape().end()},
          std::string(bytes.begin(), bytes.end())};
}

// Runs `text` and compares every result. `products` is the number of library
// calls.
void Check(const std::string& text, int threads, int64_t products,
           double tolerance) {
  CompilerContext context;
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, context.get());
  ASSERT_TRUE(module) << context.errors;
  auto main = module->lookupSymbol<mlir::func::FuncOp>("main");
  std::vector<nn::Tensor> arguments;
  for (mlir::Type type : main.getArgumentTypes())
    arguments.push_back(MadeUp(llvm::cast<mlir::RankedTensorType>(type),
                               static_cast<int64_t>(arguments.size())));
  auto expected = nn::interpret(main, arguments);
  ASSERT_TRUE(mlir::succeeded(expected)) << context.errors;
  auto model =
      CompiledModel::Make(*module, testing::TempDir(), "grouped", threads);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ((*model)->report().gemms, products);
  std::vector<HostTensor> inputs;
  for (const executor::TensorSpec& spec : (*model)->inputs())
    inputs.push_back(ToHost(arguments[inputs.size()], spec.dtype));
  auto outputs = (*model)->Run(inputs);
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  ASSERT_EQ(outputs->size(), expected->size());
  for (size_t i = 0; i < outputs->size(); ++i) {
    const nn::Tensor& want = (*expected)[i];
    const HostTensor& output = (*outputs)[i];
    auto found = nn::Tensor::fromBytes(
        want.type(), {output.bytes.data(), output.bytes.size()});
    ASSERT_TRUE(mlir::succeeded(found));
    for (int64_t j = 0; j < want.size(); ++j)
      ASSERT_NEAR(found->getFloat(j), want.getFloat(j),
                  tolerance * (1 + std::abs(want.getFloat(j))))
          << "result " << i << ", element " << j;
  }
}

std::string In16Bits(llvm::StringRef text) {
  llvm::SmallVector<llvm::StringRef> parts;
  text.split(parts, "f32");
  return llvm::join(parts, "bf16");
}

TEST(GroupedProductsTest, EqualTheInterpreter) {
  for (const int threads : {1, 3}) Check(kForward, threads, 3, 1e-5);
}

TEST(GroupedProductsTest, GradientsEqualTheInterpreter) {
  for (const int threads : {1, 3}) Check(kBackward, threads, 8, 1e-5);
}

// Products are rounded to 8 bits after sums in another order.
TEST(GroupedProductsTest, EqualTheInterpreterIn16Bits) {
  Check(In16Bits(kForward), 2, 3, 8e-3);
  Check(In16Bits(kBackward), 2, 8, 1.6e-2);
}

}  // namespace
}  // namespace partita::e2e
