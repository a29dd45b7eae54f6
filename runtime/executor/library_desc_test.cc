// Every activation and direction of the format maps to the device's of that
// name.
#include "runtime/executor/library_desc.h"

#include <gtest/gtest.h>

#include <map>

namespace partita::executor {
namespace {

TEST(LibraryDescTest, EveryActivation) {
  using device::Activation;
  const std::map<std::string, Activation> expected = {
      {"none", Activation::kNone},
      {"relu", Activation::kRelu},
      {"gelu_erf", Activation::kGeluErf},
      {"gelu_tanh", Activation::kGeluTanh},
      {"silu", Activation::kSilu},
      {"tanh", Activation::kTanh},
      {"sigmoid", Activation::kSigmoid},
      {"relu6", Activation::kRelu6},
      {"hard_swish", Activation::kHardSwish}};
  EXPECT_EQ(expected.size(), std::size(program::EnumValuesActivation()));
  for (const program::Activation activation : program::EnumValuesActivation())
    EXPECT_EQ(ToDevice(activation),
              expected.at(program::EnumNameActivation(activation)));
}

TEST(LibraryDescTest, EveryPairOfFactors) {
  using device::Factors;
  const std::map<std::string, Factors> expected = {
      {"same", Factors::kSame},
      {"rhs_i8", Factors::kRhsI8},
      {"i8", Factors::kI8},
      {"u8_i8", Factors::kU8I8},
      {"rhs_i4", Factors::kRhsI4},
      {"f8", Factors::kF8},
      {"f8_lhs_e5m2", Factors::kF8LhsE5M2},
      {"f8_rhs_e5m2", Factors::kF8RhsE5M2}};
  EXPECT_EQ(expected.size(), std::size(program::EnumValuesGemmFactors()));
  for (const program::GemmFactors factors : program::EnumValuesGemmFactors())
    EXPECT_EQ(ToDevice(factors),
              expected.at(program::EnumNameGemmFactors(factors)));
}

TEST(LibraryDescTest, EveryDirection) {
  using device::ConvDirection;
  const std::map<std::string, ConvDirection> expected = {
      {"forward", ConvDirection::kForward},
      {"input_grad", ConvDirection::kInputGrad},
      {"weight_grad", ConvDirection::kWeightGrad}};
  EXPECT_EQ(expected.size(), std::size(program::EnumValuesConvDirection()));
  for (const program::ConvDirection direction :
       program::EnumValuesConvDirection())
    EXPECT_EQ(ToDevice(direction),
              expected.at(program::EnumNameConvDirection(direction)));
}

TEST(LibraryDescTest, LabelsNameActivations) {
  device::GemmDesc desc;
  EXPECT_EQ(LabelOf(desc).name, "gemm 1x1x1x1 f32");
  desc.has_bias = true;
  desc.activation = device::Activation::kGeluTanh;
  EXPECT_EQ(LabelOf(desc).name, "gemm 1x1x1x1 f32 bias gelu_tanh");
}

TEST(LibraryDescTest, LabelsNameResultsOfTraining) {
  device::GemmDesc desc;
  desc.activation = device::Activation::kGeluTanh;
  desc.preactivation = device::Preactivation::kKept;
  EXPECT_EQ(LabelOf(desc).name, "gemm 1x1x1x1 f32 gelu_tanh kept");
  desc.preactivation = device::Preactivation::kGiven;
  EXPECT_EQ(LabelOf(desc).name, "gemm 1x1x1x1 f32 gelu_tanh gradient");
  desc = {};
  desc.sums = device::Sums::kLhs;
  EXPECT_EQ(LabelOf(desc).name, "gemm 1x1x1x1 f32 and sums of lhs");
  desc.sums = device::Sums::kRhs;
  EXPECT_EQ(LabelOf(desc).name, "gemm 1x1x1x1 f32 and sums of rhs");
}

TEST(LibraryDescTest, ConvertsResultsOfTraining) {
  using device::Preactivation;
  using device::Sums;
  EXPECT_EQ(ToDevice(program::Preactivation::none), Preactivation::kNone);
  EXPECT_EQ(ToDevice(program::Preactivation::kept), Preactivation::kKept);
  EXPECT_EQ(ToDevice(program::Preactivation::given), Preactivation::kGiven);
  EXPECT_EQ(ToDevice(program::GemmSums::none), Sums::kNone);
  EXPECT_EQ(ToDevice(program::GemmSums::lhs), Sums::kLhs);
  EXPECT_EQ(ToDevice(program::GemmSums::rhs), Sums::kRhs);
}

// A row is multiplied by one matrix, whatever the number of matrices.
TEST(LibraryDescTest, GroupedProductsCountEachRowOnce) {
  device::GroupedGemmDesc desc;
  desc.rows = 6, desc.lhs_rows = 3, desc.groups = 8, desc.n = 5, desc.k = 4;
  EXPECT_EQ(LabelOf(desc).name, "grouped gemm 6x5x4 of 8 f32");
  EXPECT_EQ(LabelOf(desc).flops, 2 * 6 * 5 * 4);
  const std::string key = KeyOf(desc);
  desc.weight_grad = true;
  EXPECT_EQ(LabelOf(desc).name, "grouped gemm weight grad 6x5x4 of 8 f32");
  EXPECT_NE(KeyOf(desc), key);
  desc.weight_grad = false;
  desc.transposed = true;
  EXPECT_NE(KeyOf(desc), key);
  desc.transposed = false;
  desc.lhs_rows = 6;
  EXPECT_NE(KeyOf(desc), key);
}

// Calls of one layer may add in place, others not.
TEST(LibraryDescTest, ConvolutionsThatAddInPlaceAreTheirOwnOperations) {
  device::ConvDesc desc;
  desc.input_shape = desc.out_shape = {1, 2, 4};
  desc.weight_shape = {2, 2, 1};
  desc.strides = desc.dilations = {1};
  desc.low = desc.high = {0};
  desc.has_residual = true;
  const std::string key = KeyOf(desc);
  desc.residual_in_out = true;
  EXPECT_NE(KeyOf(desc), key);
}

}  // namespace
}  // namespace partita::executor
