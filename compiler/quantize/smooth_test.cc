// Factors of channels, and their effect on weights.
#include "compiler/quantize/smooth.h"

#include "gtest/gtest.h"

namespace partita::quantize {
namespace {

using Floats = std::vector<float>;

TEST(SmoothTest, DimensionsOfWeights) {
  const Floats weight = {1, -2, 3, -4, 5, 6};
  Floats columns(3, 0), rows(2, 4.5F);
  largestAlong(weight, {2, 3}, 1, columns);
  EXPECT_EQ(columns, (Floats{4, 5, 6}));
  largestAlong(weight, {2, 3}, 0, rows);
  EXPECT_EQ(rows, (Floats{4.5F, 6}));
  Floats scaled = weight;
  multiplyAlong(scaled, {2, 3}, 0, {2, 10});
  EXPECT_EQ(scaled, (Floats{2, -4, 6, -40, 50, 60}));
  multiplyAlong(scaled, {2, 3}, 1, {1, 0.5F, 2});
  EXPECT_EQ(scaled, (Floats{2, -2, 12, -40, 25, 120}));
}

TEST(SmoothTest, FactorsShareTheRange) {
  // With half the strength, both sides have the same largest magnitude.
  const Floats factors = smoothingFactors({100, 4}, {1, 1}, 0.5);
  EXPECT_FLOAT_EQ(factors[0], 10);
  EXPECT_FLOAT_EQ(factors[1], 2);
  // With all of it, the activation's channels are equal.
  EXPECT_EQ(smoothingFactors({100, 4}, {3, 5}, 1), (Floats{100, 4}));
}

TEST(SmoothTest, ChannelsOfZerosHaveNoFactor) {
  EXPECT_EQ(smoothingFactors({0, 3}, {2, 0}, 0.5), (Floats{1, 1}));
}

}  // namespace
}  // namespace partita::quantize
