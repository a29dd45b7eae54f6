// Conversions of 8-bit floats in generated code equal the interpreter's on
// every bf16 number and every byte.
#include <gtest/gtest.h>

#include "compiler/kernels/codegen_fixture.h"

namespace partita::kernels {
namespace {

// Sets an argument to consecutive bit patterns.
template <typename Bits>
nn::Tensor patterns(const nn::Tensor& like) {
  std::vector<Bits> bits(like.size());
  for (size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<Bits>(i);
  return *nn::Tensor::fromBytes(
      like.type(),
      {reinterpret_cast<const char*>(bits.data()), bits.size() * sizeof(Bits)});
}

class Float8 : public testing::TestWithParam<const char*> {};

// Stores bytes, and rounds without storing.
TEST_P(Float8, RoundsEveryNumber) {
  const std::string type = GetParam();
  const std::string text =
      "func.func @k(%a: tensor<65536xbf16>) -> (tensor<65536x" + type +
      ">, tensor<65536xf32>) {\n"
      "  %w = arith.extf %a : tensor<65536xbf16> to tensor<65536xf32>\n"
      "  %q = arith.truncf %w : tensor<65536xf32> to tensor<65536x" +
      type + ">\n  %r = arith.extf %q : tensor<65536x" + type +
      "> to tensor<65536xf32>\n  return %q, %r : tensor<65536x" + type +
      ">, tensor<65536xf32> }";
  SCOPED_TRACE(text);
  std::unique_ptr<CompiledKernel> kernel = CompiledKernel::fromText(text);
  ASSERT_NE(kernel, nullptr);
  EXPECT_EQ(kernel->difference(0, 0, 1,
                               [](std::vector<nn::Tensor>& arguments) {
                                 arguments[0] =
                                     patterns<uint16_t>(arguments[0]);
                               }),
            "");
}

TEST_P(Float8, ReadsEveryByte) {
  const std::string type = GetParam();
  const std::string text =
      "func.func @k(%a: tensor<256x" + type +
      ">) -> (tensor<256xf32>, tensor<256xbf16>) {\n"
      "  %r = arith.extf %a : tensor<256x" +
      type +
      "> to tensor<256xf32>\n"
      "  %n = arith.extf %a : tensor<256x" +
      type +
      "> to tensor<256xbf16>\n"
      "  return %r, %n : tensor<256xf32>, tensor<256xbf16> }";
  SCOPED_TRACE(text);
  std::unique_ptr<CompiledKernel> kernel = CompiledKernel::fromText(text);
  ASSERT_NE(kernel, nullptr);
  EXPECT_EQ(kernel->difference(0, 0, 1,
                               [](std::vector<nn::Tensor>& arguments) {
                                 arguments[0] = patterns<uint8_t>(arguments[0]);
                               }),
            "");
}

// Random numbers with more bits than bf16, in shapes with a remainder.
TEST_P(Float8, RoundsF32AndF64) {
  const std::string type = GetParam();
  for (const std::string from : {"f32", "f64"}) {
    const std::string wide = "tensor<5x333x" + from + ">",
                      narrow = "tensor<5x333x" + type + ">";
    const std::string text = "func.func @k(%a: " + wide + ") -> " + narrow +
                             " { %q = arith.truncf %a : " + wide + " to " +
                             narrow + " return %q : " + narrow + " }";
    SCOPED_TRACE(text);
    std::unique_ptr<CompiledKernel> kernel = CompiledKernel::fromText(text);
    ASSERT_NE(kernel, nullptr);
    for (const double scale : {1e-3, 1.0, 100.0})
      EXPECT_EQ(kernel->difference(0, 0, scale), "") << scale;
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, Float8, testing::Values("f8E4M3FN", "f8E5M2"),
                         [](const auto& format) {
                           return std::string(format.param);
                         });

}  // namespace
}  // namespace partita::kernels
