// Breaks every rule about convolutions once.
#include <string>

#include "gtest/gtest.h"
#include "runtime/program/validate_testing.h"

namespace partita::program {
namespace {

ConvT& TheConv(ProgramT& program) {
  return *Main(program).body[2]->operation.AsConv();
}

TEST(ValidateConvTest, Conv) {  // V7
  const std::string where = "function 'main', instruction 2: conv";
  EXPECT_EQ(After([](ProgramT& p) { TheConv(p).groups = 3; }),
            where +
                ": input [1,4,8,8], weight [4,4,3,3], out [1,4,8,8] and 3 "
                "groups do not fit");
  EXPECT_EQ(After([](ProgramT& p) { TheConv(p).low = {0, 1}; }),
            where +
                ": size 8 of the result's spatial dimension 0 does not follow "
                "from its window");
  EXPECT_EQ(After([](ProgramT& p) { TheConv(p).strides = {1, 0}; }),
            where + ": a stride, dilation or padding is out of range");
  EXPECT_EQ(
      After([](ProgramT& p) { TheConv(p).strides = {1}; }),
      where +
          ": expected one stride, dilation and padding per spatial dimension");
  EXPECT_EQ(After([](ProgramT& p) { TheConv(p).weight_shape = {4, 4}; }),
            where + ": input, weight and out must have the same rank, 3 to 5");
  EXPECT_EQ(After([](ProgramT& p) { TheConv(p).activates_sum = true; }),
            where + ": activates_sum without residual or activation");
  EXPECT_EQ(After([](ProgramT& p) {
              TheConv(p).direction = static_cast<ConvDirection>(7);
            }),
            where + ": unknown direction 7");
  EXPECT_EQ(After([](ProgramT& p) {
              TheConv(p).direction = ConvDirection::input_grad;
              TheConv(p).has_bias = true;
            }),
            where + ": a gradient with bias, residual or activation");
  EXPECT_EQ(After([](ProgramT& p) { TheConv(p).has_zero = true; }),
            where + ": a zero without factors of 8 bits");
  EXPECT_EQ(
      After([](ProgramT& p) { TheConv(p).factors = GemmFactors::rhs_i8; }),
      where + ": factors must be same, i8 or u8_i8, found 1");
  EXPECT_EQ(After([](ProgramT& p) {
              TheConv(p).factors = GemmFactors::u8_i8;
              TheConv(p).direction = ConvDirection::input_grad;
            }),
            where +
                ": factors of 8 bits in a gradient, with a result other than "
                "f32, i8 or u8, or with a residual of 8 bits");
  EXPECT_EQ(After([](ProgramT& p) {
              TheConv(p).factors = GemmFactors::u8_i8;
              TheConv(p).has_zero = true;
              TheConv(p).dtype = DType::u8;
            }),
            where +
                ": expected 7 operands, 1 of them written, found 3, 1 of them "
                "written");
  EXPECT_EQ(After([](ProgramT& p) { TheConv(p).dtype = DType::u8; }),
            where + ": element type must be f32, f16 or bf16, found u8");
  EXPECT_EQ(After([](ProgramT& p) { TheConv(p).has_bias = true; }),
            where +
                ": expected 4 operands, 1 of them written, found 3, 1 of them "
                "written");
}

}  // namespace
}  // namespace partita::program
