// Tests of tensors: rounding to element types, conversion from and to constants
// and bytes.
#include "dialects/nn/tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "dialects/nn/interpreter_fixture.h"
#include "mlir/AsmParser/AsmParser.h"

namespace partita::nn {
namespace {

class TensorTest : public InterpreterFixture {
 protected:
  mlir::DenseElementsAttr attr(const std::string& text) {
    return mlir::cast<mlir::DenseElementsAttr>(
        mlir::parseAttribute(text, &context_));
  }
};

TEST_F(TensorTest, RoundsTiesToEven) {
  const auto bf16 = mlir::BFloat16Type::get(&context_);
  EXPECT_EQ(roundToType(1 + 1.0 / 256, bf16), 1.0);  // halfway, down to even
  EXPECT_EQ(roundToType(1 + 3.0 / 256, bf16),
            1 + 4.0 / 256);  // halfway, up to even
  EXPECT_EQ(roundToType(1 + 1.01 / 256, bf16), 1 + 2.0 / 256);
  EXPECT_EQ(roundToType(65520, mlir::Float16Type::get(&context_)),
            std::numeric_limits<double>::infinity());
  EXPECT_EQ(roundToType(0.1, mlir::Float32Type::get(&context_)),
            static_cast<double>(0.1f));
  EXPECT_TRUE(std::isnan(roundToType(std::nan(""), bf16)));
}

TEST_F(TensorTest, KeepsIntegersInTheirWidth) {
  Tensor bytes(typeFrom("tensor<2xi8>"));
  bytes.setInt(0, 200);
  bytes.setInt(1, -129);
  EXPECT_EQ(numbersOf(bytes), (std::vector<double>{-56, 127}));
  Tensor bits(typeFrom("tensor<2xi1>"));
  bits.setInt(0, -1);
  bits.setInt(1, 2);
  EXPECT_EQ(numbersOf(bits), (std::vector<double>{1, 0}));
}

TEST_F(TensorTest, ConstantsMakeTheRoundTrip) {
  for (const char* text :
       {"dense<[1.5, -2.0, 0x7FC00000]> : tensor<3xf32>",
        "dense<[[1.5], [2.5]]> : tensor<2x1xbf16>",
        "dense<[1.0, 3.0]> : tensor<2xf16>",
        "dense<[1.0, 3.0]> : tensor<2xf64>",
        "dense<[1, -1, 127]> : tensor<3xi8>",
        "dense<[-9223372036854775808, 5]> : tensor<2xi64>",
        "dense<[7, -8]> : tensor<2xi4>",
        "dense<[true, false, true]> : tensor<3xi1>",
        "dense<true> : tensor<9xi1>", "dense<2.5> : tensor<2x3xf32>",
        "dense<4> : tensor<i64>", "dense<> : tensor<0x3xf32>",
        "dense<[1.0, 0.5]> : tensor<2xf8E4M3FN>"}) {
    EXPECT_EQ(Tensor::fromAttr(attr(text)).toAttr(), attr(text)) << text;
  }
}

TEST_F(TensorTest, EqualElementsBecomeASplat) {
  EXPECT_TRUE(tensor("tensor<3xf32>", {2, 2, 2}).toAttr().isSplat());
  EXPECT_FALSE(tensor("tensor<3xf32>", {2, 2, 3}).toAttr().isSplat());
  EXPECT_FALSE(tensor("tensor<2xf32>", {0.0, -0.0}).toAttr().isSplat());
}

TEST_F(TensorTest, BytesMakeTheRoundTripAndWantTheirSize) {
  for (const char* type : {"tensor<2x3xf32>", "tensor<5xbf16>", "tensor<4xi1>",
                           "tensor<4xi64>", "tensor<0xf32>"}) {
    const Tensor original = random(typeFrom(type));
    const std::vector<char> bytes = original.toBytes();
    const auto again = Tensor::fromBytes(original.type(), bytes);
    ASSERT_TRUE(mlir::succeeded(again)) << type;
    EXPECT_EQ(numbersOf(*again), numbersOf(original)) << type;
    EXPECT_TRUE(mlir::failed(Tensor::fromBytes(
        original.type(), std::vector<char>(bytes.size() + 1))))
        << type;
  }
}

TEST_F(TensorTest, PositionsAndIndicesAreInverse) {
  const Tensor t(typeFrom("tensor<2x3x4xf32>"));
  EXPECT_EQ(t.position({1, 2, 3}), 23);
  for (int64_t i = 0; i < t.size(); ++i) EXPECT_EQ(t.position(t.index(i)), i);
}

}  // namespace
}  // namespace partita::nn
