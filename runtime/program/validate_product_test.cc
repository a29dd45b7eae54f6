// Breaks every rule about matrix products once.
#include <functional>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "runtime/program/test_program.h"
#include "runtime/program/validate_testing.h"

namespace partita::program {
namespace {

GemmT& TheGemm(ProgramT& program) {
  return *Layer(program).body[0]->operation.AsGemm();
}

TEST(ValidateProductTest, Gemm) {  // V7
  const std::string where = "function 'layer', instruction 0: gemm";
  EXPECT_EQ(After([](ProgramT& p) { TheGemm(p).dtype = DType::i8; }),
            where + ": element type must be f32, f16 or bf16, found i8");
  EXPECT_EQ(After([](ProgramT& p) { TheGemm(p).m = 0; }),
            where + ": size 0 is out of range");
  EXPECT_EQ(After([](ProgramT& p) { TheGemm(p).m = 5; }),
            where + ": operand 0 needs 160 bytes, found 128");
  EXPECT_EQ(After([](ProgramT& p) { TheGemm(p).rhs_strides = {64, 8, 2}; }),
            where + ": operand 1 needs 284 bytes, found 256");
  EXPECT_EQ(After([](ProgramT& p) { TheGemm(p).lhs_strides = {1, 1}; }),
            where + " lhs: expected 3 strides, found 2");
  EXPECT_EQ(After([](ProgramT& p) { TheGemm(p).lhs_strides = {1, -8, 1}; }),
            where + " lhs: stride -8 is out of range");
  EXPECT_EQ(After([](ProgramT& p) { TheGemm(p).out_strides = {0, 0, 1}; }),
            where + ": elements of out overlap");
  EXPECT_EQ(After([](ProgramT& p) { TheGemm(p).out_strides = {0, 7, 1}; }),
            where + ": elements of out overlap");
  EXPECT_EQ(After([](ProgramT& p) {
              TheGemm(p).batch = 2;
              TheGemm(p).lhs_strides[0] = TheGemm(p).rhs_strides[0] = 0;
            }),
            where + ": a batch of which neither lhs nor rhs depends");
  EXPECT_EQ(After([](ProgramT& p) { TheGemm(p).has_residual = true; }),
            where +
                ": expected 5 operands, 1 of them written, found 4, 1 of them "
                "written");
  EXPECT_EQ(After([](ProgramT& p) {
              TheGemm(p).activation = static_cast<Activation>(50);
            }),
            where + ": unknown activation 50");
}

TEST(ValidateProductTest, GemmOfBytes) {  // V7
  const std::string where = "function 'layer', instruction 0: gemm";
  EXPECT_EQ(After([](ProgramT& p) {
              TheGemm(p).factors = static_cast<GemmFactors>(50);
            }),
            where + ": unknown factors 50");
  EXPECT_EQ(After([](ProgramT& p) {
              TheGemm(p).factors = GemmFactors::rhs_i8;
              TheGemm(p).activation = Activation::relu;
            }),
            where +
                ": factors of 8 bits with a result other than f32 or i32, a "
                "residual, an activation, or a bias of i32");
  EXPECT_EQ(After([](ProgramT& p) {
              TheGemm(p).factors = GemmFactors::rhs_i8;
              TheGemm(p).dtype = DType::i32;
              TheGemm(p).activation = Activation::none;
            }),
            where +
                ": factors of 8 bits with a result other than f32 or i32, a "
                "residual, an activation, or a bias of i32");
  const std::string group =
      ", which must be even and positive for factors of 4 bits, and 0 without "
      "a zero for others";
  EXPECT_EQ(After([](ProgramT& p) {
              TheGemm(p).factors = GemmFactors::rhs_i4;
              TheGemm(p).group = 3;
            }),
            where + ": group 3" + group);
  EXPECT_EQ(After([](ProgramT& p) { TheGemm(p).has_zero = true; }),
            where + ": group 0" + group);
  // A scale is an operand of its own.
  EXPECT_EQ(After([](ProgramT& p) {
              TheGemm(p).factors = GemmFactors::u8_i8;
              TheGemm(p).activation = Activation::none;
            }),
            where +
                ": expected 5 operands, 1 of them written, found 4, 1 of them "
                "written");
}

TEST(ValidateProductTest, GemmOfTraining) {  // V7
  const std::string where = "function 'layer', instruction 0: gemm: ";
  const std::string preactivation =
      where +
      "a pre-activation with another activation than gelu_tanh, a residual, or "
      "a bias beside a given one";
  EXPECT_EQ(After([](ProgramT& p) {
              TheGemm(p).preactivation = static_cast<Preactivation>(50);
            }),
            where + "unknown pre-activation 50");
  EXPECT_EQ(
      After([](ProgramT& p) { TheGemm(p).sums = static_cast<GemmSums>(50); }),
      where + "unknown sums 50");
  EXPECT_EQ(After([](ProgramT& p) {
              TheGemm(p).preactivation = Preactivation::kept;
            }),
            preactivation);
  EXPECT_EQ(After([](ProgramT& p) {
              TheGemm(p).preactivation = Preactivation::given;
              TheGemm(p).activation = Activation::gelu_tanh;
            }),
            preactivation);
  EXPECT_EQ(After([](ProgramT& p) {
              TheGemm(p).preactivation = Preactivation::kept;
              TheGemm(p).activation = Activation::gelu_tanh;
            }),
            where +
                "expected 5 operands, 2 of them written, found 4, 1 of them "
                "written");
  EXPECT_EQ(
      After([](ProgramT& p) { TheGemm(p).sums = GemmSums::rhs; }),
      where +
          "sums beside a batch, factors of 8 bits, a bias, a residual or an "
          "activation");
  EXPECT_EQ(After([](ProgramT& p) {
              TheGemm(p).sums = GemmSums::lhs;
              TheGemm(p).activation = Activation::none;
              TheGemm(p).has_bias = false;
            }),
            where +
                "expected 4 operands, 2 of them written, found 4, 1 of them "
                "written");
}

TEST(ValidateProductTest, GroupedGemm) {  // V7
  // The message after `change` to a grouped gemm in place of the gemm.
  const auto after = [](const std::function<void(GroupedGemmT&)>& change) {
    return After([&](ProgramT& p) {
      GroupedGemmT g;
      g.ids = DType::i32;
      g.rows = g.lhs_rows = 4, g.groups = 1, g.n = g.k = 8;
      change(g);
      Layer(p).body[0]->operation.Set(std::move(g));
    });
  };
  const std::string where = "function 'layer', instruction 0: grouped gemm: ";
  EXPECT_EQ(after([](GroupedGemmT&) {}), "");
  EXPECT_EQ(after([](GroupedGemmT& g) { g.lhs_rows = 2; }), "");
  EXPECT_EQ(after([](GroupedGemmT& g) { g.ids = DType::i64; }), "");
  EXPECT_EQ(after([](GroupedGemmT& g) { g.dtype = DType::i8; }),
            where + "element type must be f32, f16 or bf16, found i8");
  EXPECT_EQ(after([](GroupedGemmT& g) { g.ids = DType::f32; }),
            where + "indices must be i32 or i64, found f32");
  EXPECT_EQ(after([](GroupedGemmT& g) { g.ids = static_cast<DType>(90); }),
            where + "indices must be i32 or i64, found an unknown type");
  EXPECT_EQ(after([](GroupedGemmT& g) { g.groups = 0; }),
            where + "size 0 is out of range");
  EXPECT_EQ(after([](GroupedGemmT& g) { g.lhs_rows = 0; }),
            where + "size 0 is out of range");
  EXPECT_EQ(after([](GroupedGemmT& g) { g.groups = g.n = g.k = 1LL << 31; }),
            where + "[2147483648,2147483648,2147483648] is too big");
  EXPECT_EQ(after([](GroupedGemmT& g) { g.lhs_rows = 3; }),
            where + "4 rows are no multiple of lhs's 3");
  EXPECT_EQ(after([](GroupedGemmT& g) { g.weight_grad = g.transposed = true; }),
            where + "a weight gradient that is transposed");
  EXPECT_EQ(after([](GroupedGemmT& g) { g.groups = 2; }),
            where + "operand 1 needs 512 bytes, found 256");
  EXPECT_EQ(after([](GroupedGemmT& g) { g.weight_grad = true; }),
            where + "operand 3 needs 256 bytes, found 128");
}

}  // namespace
}  // namespace partita::program
