// Tests of importing operators of quantised numbers: results and refusals.
#include <gtest/gtest.h>

#include "dialects/nn/interpreter.h"
#include "frontends/onnx/importer_fixture.h"
#include "frontends/onnx/test_model.h"

namespace partita::onnx {
namespace {

class QuantizedImportTest : public ImporterTest {};

TEST_F(QuantizedImportTest, RefusesScalesThatDoNotFit) {
  const auto quantized = [](const Message& x, const Message& scale,
                            const std::vector<Message>& attributes) {
    return model(graph({node("QuantizeLinear", {"x", "s"}, {"y"}, attributes)},
                       {x}, {kY}, {scale}),
                 21);
  };
  const Message two = floats("s", {2}, {1, 2});
  expectRefused(quantized(kX, two, {}),
                {"expected a scale and a zero point of one element, or of 3 "
                 "for dimension 1, found the shape [2]"});
  expectRefused(quantized(kX, two, {attribute("block_size", 2)}),
                {"expected a scale and a zero point of the shape [2, 2] for "
                 "blocks of 2, found [2]"});
  expectRefused(quantized(kX, two, {attribute("block_size", -1)}),
                {"expected a positive block_size, found -1"});
  const Message one = floats("s", {}, {1});
  expectRefused(quantized(kX, one, {attribute("output_dtype", kI64)}),
                {"expected integers of at most 16 bits, found 64"});
  expectRefused(model(graph({node("QuantizeLinear", {"x", "s", "z"}, {"y"},
                                  {attribute("output_dtype", 2)})},
                            {kX}, {kY}, {one, int64s("z", {}, {0})}),
                      21),
                {"expected output_dtype to be the zero point's type"});
}

// A product with a weight [n, k] of 4 bits.
struct Packed {
  std::vector<std::string> x = {"2", "40"}, b = {"3", "3", "8"}, scale = {"9"},
                           zero = {"6"};
  int64_t n = 3, k = 40, block = 16, bits = 4;
  int b_type = 2, zero_type = 2;  // uint8
  bool has_order = false;

  Message message() const {
    Message node = onnx::node(
        "MatMulNBits", {"x", "b", "s", "z", has_order ? "g" : "", "c"}, {"y"},
        {attribute("N", n), attribute("K", k), attribute("block_size", block),
         attribute("bits", bits)},
        "com.microsoft");
    std::vector<Message> inputs = {
        valueInfo("x", kF32, x), valueInfo("b", b_type, b),
        valueInfo("s", kF32, scale), valueInfo("z", zero_type, zero),
        valueInfo("c", kF32, {std::to_string(n)})};
    if (has_order) inputs.push_back(valueInfo("g", kI64, {"40"}));
    return model(graph({node}, inputs, {kY}))
        .message(8, Message().bytes(1, "com.microsoft").varint(2, 1));
  }
};

// The last of an odd number of blocks is not full.
TEST_F(QuantizedImportTest, MultipliesWeightsOf4Bits) {
  auto module = import(Packed().message());
  ASSERT_TRUE(module) << errors_;
  std::vector<nn::Tensor> arguments;
  for (mlir::Type type : mainOf(module).getArgumentTypes()) {
    nn::Tensor& tensor =
        arguments.emplace_back(mlir::cast<mlir::RankedTensorType>(type));
    for (int64_t i = 0; i < tensor.size(); ++i)
      if (tensor.isFloat())
        tensor.setFloat(i, static_cast<double>(i * 37 % 101) / 64 - 0.5);
      else
        tensor.setInt(i, i * 41 % 256);
  }
  auto found = nn::interpret(mainOf(module), arguments);
  ASSERT_TRUE(mlir::succeeded(found));
  const auto half = [](const nn::Tensor& bytes, int64_t byte, int64_t i) {
    const int64_t value = bytes.getInt(byte) & 255;
    return i % 2 == 0 ? value & 15 : value >> 4;
  };
  for (int64_t row = 0; row < 2; ++row)
    for (int64_t n = 0; n < 3; ++n) {
      double sum = arguments[4].getFloat(n);
      for (int64_t k = 0; k < 40; ++k) {
        const int64_t block = k / 16;
        const int64_t bits = half(arguments[1], n * 24 + k / 2, k),
                      zero = half(arguments[3], n * 2 + block / 2, block);
        sum += arguments[0].getFloat(row * 40 + k) *
               arguments[2].getFloat(n * 3 + block) *
               static_cast<double>(bits - zero);
      }
      EXPECT_NEAR((*found)[0].getFloat(row * 3 + n), sum, 1e-4);
    }
}

TEST_F(QuantizedImportTest, RefusesWeightsOf4BitsThatDoNotFit) {
  const auto refused = [&](const std::string& part, auto change) {
    Packed packed;
    change(packed);
    expectRefused(packed.message(), {part});
  };
  refused("bits=8 is not supported", [](Packed& p) { p.bits = 8; });
  refused("g_idx is not supported", [](Packed& p) { p.has_order = true; });
  refused("zero_points of floats is not supported",
          [](Packed& p) { p.zero_type = kF32; });
  refused("expected zero_points of uint8, found i8",
          [](Packed& p) { p.zero_type = 3; });
  refused("expected zero_points of 6 bytes", [](Packed& p) { p.zero = {"9"}; });
  refused("expected B of uint8 [3, 3, 8]", [](Packed& p) { p.b_type = 3; });
  refused("expected B of uint8 [3, 3, 8]",
          [](Packed& p) { p.b = {"3", "3", "7"}; });
  refused("expected B of uint8 [3, 3, 8]", [](Packed& p) { p.scale = {"8"}; });
  refused("a block_size that is a power of 2", [](Packed& p) { p.block = 24; });
  refused("expected A of floats with K=40",
          [](Packed& p) { p.x = {"2", "41"}; });
  // Products of these numbers have more than 64 bits.
  refused("expected a matrix of at most 2^48 numbers", [](Packed& p) {
    p.n = int64_t{1} << 32, p.k = int64_t{1} << 36, p.block = 16;
    p.x = {"0", std::to_string(p.k)}, p.b = {"0"}, p.scale = {"0"};
  });
}

TEST_F(QuantizedImportTest, RefusesParametersThatDoNotFitMatrices) {
  expectRefused(
      model(graph({node("MatMulInteger", {"x", "x", "z"}, {"y"})},
                  {valueInfo("x", kI64, {"3", "3"})}, {kY},
                  {int64s("z", {2}, {1, 2})}),
            10),
      {"expected a scale and a zero point of one element, or of one for each "
       "of 3 rows, found the shape [2]"});
}

// A convolution of bytes: [1, channels, 4, 4] by [2, channels, 3, 3].
struct ByteConvolution {
  std::string op = "ConvInteger";
  std::vector<std::string> inputs = {"x", "w", "xz", "wz"}, bias = {"2"};
  int64_t channels = 3, x_zeros = 1, w_zeros = 2;
  int x_type = 2, w_type = 3;  // u8, i8

  Message message() const {
    const std::string c = std::to_string(channels);
    return model(graph({node(op, inputs, {"y"})},
                       {valueInfo("x", x_type, {"1", c, "4", "4"}),
                        valueInfo("w", w_type, {"2", c, "3", "3"}),
                        valueInfo("xz", 2, {std::to_string(x_zeros)}),
                        valueInfo("wz", 3, {std::to_string(w_zeros)}),
                        valueInfo("b", 6, bias)},
                       {valueInfo("y", op == "ConvInteger" ? 6 : 2, {})},
                       {floats("s", {1}, {1})}),
                 10);
  }
};

// 3 channels have sums that f32 represents, 40 have not.
TEST_F(QuantizedImportTest, ConvolvesBytesExactly) {
  for (const int64_t channels : {3, 40}) {
    ByteConvolution given;
    given.channels = channels;
    auto module = import(given.message());
    ASSERT_TRUE(module) << errors_;
    std::vector<nn::Tensor> arguments;
    for (mlir::Type type : mainOf(module).getArgumentTypes()) {
      nn::Tensor& tensor =
          arguments.emplace_back(mlir::cast<mlir::RankedTensorType>(type));
      // The largest sums, but for some smaller terms.
      const int64_t sign = arguments.size() == 2 ? -128 : 255;
      for (int64_t i = 0; i < tensor.size(); ++i)
        if (!tensor.isFloat())
          tensor.setInt(i, arguments.size() > 2 ? 2 * i + 1
                           : i % 5 == 4         ? i % 89
                                                : sign);
    }
    auto found = nn::interpret(mainOf(module), arguments);
    ASSERT_TRUE(mlir::succeeded(found));
    ASSERT_EQ((*found)[0].size(), 8);
    const auto byte = [](int64_t value, bool is_signed) {
      return is_signed ? int64_t{static_cast<int8_t>(value)} : value & 255;
    };
    for (int64_t out = 0; out < 8; ++out) {
      const int64_t feature = out / 4, row = out / 2 % 2, column = out % 2;
      int64_t sum = 0;
      for (int64_t c = 0; c < channels; ++c)
        for (int64_t i = 0; i < 9; ++i) {
          const int64_t x = arguments[0].getInt(c * 16 + (row + i / 3) * 4 +
                                                column + i % 3),
                        w = arguments[1].getInt((feature * channels + c) * 9 +
                                                i);
          sum += (byte(x, false) - 1) * (byte(w, true) - (2 * feature + 1));
        }
      EXPECT_EQ((*found)[0].getInt(out), sum) << channels << ", " << out;
    }
  }
}

TEST_F(QuantizedImportTest, RefusesConvolutionsOfBytesThatDoNotFit) {
  const auto refused = [&](const std::string& part, auto change) {
    ByteConvolution given;
    change(given);
    expectRefused(given.message(), {part});
  };
  const auto with_scales = [](ByteConvolution& c) {
    c.op = "QLinearConv";
    c.inputs = {"x", "s", "xz", "w", "s", "wz", "s", "xz", "b"};
  };
  refused("expected integers of 8 bits in input 0, found f32",
          [](auto& c) { c.x_type = kF32; });
  refused("expected integers of 8 bits in input 1, found i32",
          [](auto& c) { c.w_type = 6; });
  refused("expected one element in input 2, found the shape [2]",
          [](auto& c) { c.x_zeros = 2; });
  refused(
      "expected one element in input 3, or one for each of 2 channels, "
      "found the shape [3]",
      [](auto& c) { c.w_zeros = 3; });
  refused(
      "expected one element for each of 2 channels in input 8, found the "
      "shape [3]",
      [&](auto& c) { with_scales(c), c.bias = {"3"}; });
  refused("expected one element in input 2, found the shape [2]",
          [&](auto& c) { with_scales(c), c.x_zeros = 2; });
}

}  // namespace
}  // namespace partita::onnx
