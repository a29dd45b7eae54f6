// Floats of 8 bits against other software: casts of the runtime and of the
// interpreter against ml_dtypes, and a linear layer with its gradients against
// PyTorch. tests/peers/round_float8.py wrote the expected values.
#include <cmath>
#include <cstring>

#include "compiler/autodiff/gradient.h"
#include "compiler/autodiff/passes.h"
#include "dialects/nn/interpreter.h"
#include "dialects/nn/tensor.h"
#include "gtest/gtest.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "runtime/base/dtype.h"
#include "tests/e2e/golden.h"

namespace partita::e2e {
namespace {

constexpr char kFolder[] = "tests/data/float8/";
constexpr int64_t kNumbers = 65536;

bool AreEqual(double a, double b) {
  return a == b ? std::signbit(a) == std::signbit(b)
                : std::isnan(a) && std::isnan(b);
}

class Float8OracleTest : public testing::Test {
 protected:
  Float8OracleTest() : context_(Dialects()) {
    context_.loadAllAvailableDialects();
  }

  static mlir::DialectRegistry Dialects() {
    mlir::DialectRegistry registry;
    registry.insert<nn::NNDialect, mlir::func::FuncDialect,
                    mlir::arith::ArithDialect, mlir::math::MathDialect>();
    nn::registerExternalModels(registry);
    autodiff::registerGradients(registry);
    return registry;
  }

  // Values of the golden file in the type.
  nn::Tensor Stored(const HostTensor& tensor, mlir::Type element) {
    nn::Tensor result(mlir::RankedTensorType::get(tensor.shape, element));
    for (int64_t i = 0; i < tensor.elements(); ++i)
      result.setFloat(i, tensor.floats()[i]);
    return result;
  }

  mlir::MLIRContext context_;
};

TEST_F(Float8OracleTest, CastsOfEveryNumberEqualMlDtypes) {
  auto expected = ReadTensors(std::string(kFolder) + "rounded.safetensors", "");
  ASSERT_TRUE(expected.ok()) << expected.status();
  const std::pair<const char*, mlir::FloatType> formats[] = {
      {"e4m3", mlir::Float8E4M3FNType::get(&context_)},
      {"e5m2", mlir::Float8E5M2Type::get(&context_)}};
  for (const auto& [name, type] : formats) {
    const HostTensor& bytes = expected->at(name);
    ASSERT_EQ(bytes.elements(), kNumbers);
    ASSERT_EQ(bytes.dtype, mlir::isa<mlir::Float8E5M2Type>(type)
                               ? base::DType::kF8E5M2
                               : base::DType::kF8E4M3);
    int64_t wrong = 0;
    for (int64_t i = 0; i < kNumbers; ++i) {
      const float number = base::BFloat16ToFloat(static_cast<uint16_t>(i));
      const double rounded =
          base::ElementAsDouble(bytes.dtype, bytes.bytes.data(), i);
      char byte;
      base::Convert(base::DType::kF32, &number, bytes.dtype, &byte, 1);
      const double found = base::ElementAsDouble(bytes.dtype, &byte, 0);
      if (!AreEqual(found, rounded) && ++wrong == 1)
        ADD_FAILURE() << "the runtime rounds " << number << " to " << found
                      << ", expected " << rounded;
      const double interpreted = nn::roundToType(number, type);
      if (!AreEqual(interpreted, rounded) && ++wrong == 1)
        ADD_FAILURE() << "the interpreter rounds " << number << " to "
                      << interpreted << ", expected " << rounded;
    }
    EXPECT_EQ(wrong, 0) << name;
  }
}

TEST_F(Float8OracleTest, LinearLayerEqualsPyTorch) {
  auto golden = ReadTensors(std::string(kFolder) + "linear.safetensors", "");
  ASSERT_TRUE(golden.ok()) << golden.status();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(R"(
    func.func @main(
        %x: tensor<32x48xbf16> {nn.kind = "parameter", nn.name = "x"},
        %w: tensor<48x64xbf16> {nn.kind = "parameter", nn.name = "w"},
        %g: tensor<32x64xf32> {nn.kind = "input", nn.name = "g"})
        -> (tensor<f32> {nn.name = "loss"}) {
      %y = call @layer(%x, %w) : (tensor<32x48xbf16>, tensor<48x64xbf16>)
          -> tensor<32x64xbf16>
      %wide = arith.extf %y : tensor<32x64xbf16> to tensor<32x64xf32>
      %weighted = arith.mulf %wide, %g : tensor<32x64xf32>
      %loss = nn.reduce sum %weighted dims = [0, 1]
          : tensor<32x64xf32> -> tensor<f32>
      return %loss : tensor<f32>
    }
    func.func private @layer(%x: tensor<32x48xbf16>, %w: tensor<48x64xbf16>)
        -> tensor<32x64xbf16> {
      %y = nn.dot_general %x, %w contract = [1] x [0]
          : tensor<32x48xbf16>, tensor<48x64xbf16> -> tensor<32x64xbf16>
      return %y : tensor<32x64xbf16>
    })",
                                                        &context_);
  ASSERT_TRUE(module);
  mlir::PassManager passes(&context_);
  passes.addPass(autodiff::createChooseFloat8ProductsPass());
  passes.addPass(autodiff::createDifferentiatePass());
  passes.addPass(autodiff::createRoundFloat8FactorsPass());
  ASSERT_TRUE(mlir::succeeded(passes.run(*module)));
  const mlir::Type brain = mlir::BFloat16Type::get(&context_);
  auto results = nn::interpret(
      module->lookupSymbol<mlir::func::FuncOp>("main"),
      {Stored(golden->at("x"), brain), Stored(golden->at("w"), brain),
       Stored(golden->at("g"), mlir::Float32Type::get(&context_))});
  ASSERT_TRUE(mlir::succeeded(results));
  ASSERT_EQ(results->size(), 3u);
  double loss = 0, size = 0;
  const HostTensor& y = golden->at("y");
  for (int64_t i = 0; i < y.elements(); ++i) {
    const double term = y.floats()[i] * golden->at("g").floats()[i];
    loss += term;
    size += std::abs(term);
  }
  // Each element of y is rounded to bf16 once.
  EXPECT_NEAR((*results)[0].getFloat(0), loss, std::ldexp(size, -9));
  const char* const kGradients[] = {"grad.x", "grad.w"};
  for (size_t i = 0; i < 2; ++i) {
    const HostTensor& expected = golden->at(kGradients[i]);
    const nn::Tensor& found = (*results)[i + 1];
    ASSERT_EQ(found.size(), expected.elements());
    for (int64_t e = 0; e < found.size(); ++e)
      ASSERT_NEAR(found.getFloat(e), expected.floats()[e],
                  std::ldexp(std::abs(expected.floats()[e]), -8) + 1e-12)
          << kGradients[i] << " " << e;
  }
}

}  // namespace
}  // namespace partita::e2e
