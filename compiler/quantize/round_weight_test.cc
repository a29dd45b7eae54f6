// Rounding of weights: scales per channel, errors, and numbers that have none.
#include "compiler/quantize/round_weight.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"

namespace partita::quantize {
namespace {

using Floats = std::vector<float>;
using Bytes = std::vector<int8_t>;

TEST(RoundWeightTest, EachChannelHasItsScale) {
  const Floats weight = {127, -63.4F, 1, 0.5F, 12.7F, -6.5F, 0, 0.05F};
  auto rows = RoundWeight(weight, {2, 4}, {0});
  ASSERT_TRUE(rows.ok());
  EXPECT_EQ(rows->values, (Bytes{127, -63, 1, 0, 127, -65, 0, 0}));
  EXPECT_FLOAT_EQ(rows->scales[0], 1);
  EXPECT_FLOAT_EQ(rows->scales[1], 0.1F);
  auto columns = RoundWeight(weight, {2, 4}, {1});
  ASSERT_TRUE(columns.ok());
  EXPECT_EQ(columns->values, (Bytes{127, -127, 127, 127, 13, -13, 0, 13}));
  auto all = RoundWeight(weight, {2, 4}, {});
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(all->scales, (Floats{1}));
}

TEST(RoundWeightTest, SeveralChannelDimensions) {
  // [2, 2, 2] with channels (0, 2).
  auto found = RoundWeight({1, 2, 4, 8, 16, 32, 64, 128}, {2, 2, 2}, {0, 2});
  ASSERT_TRUE(found.ok());
  ASSERT_EQ(found->scales.size(), 4U);
  EXPECT_FLOAT_EQ(found->scales[0], 4 / 127.F);
  EXPECT_FLOAT_EQ(found->scales[1], 8 / 127.F);
  EXPECT_FLOAT_EQ(found->scales[2], 64 / 127.F);
  EXPECT_FLOAT_EQ(found->scales[3], 128 / 127.F);
}

// The bytes of 448, 1 and the least number 2^-9 are 0x7e, 0x38 and 1. 17 is the
// middle of 16 and 18, and becomes 16, whose fraction is even.
TEST(RoundWeightTest, FloatsHaveThreeBitsOfFraction) {
  auto found = RoundWeight({448, -1, 17, 0.001953125F, 0.0009F, 896, 2, 0},
                           {2, 4}, {0}, ByteFormat::kE4M3);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->scales, (Floats{1, 2}));
  EXPECT_EQ(found->values, (Bytes{0x7e, static_cast<int8_t>(0xb8), 0x58, 1, 0,
                                  0x7e, 0x38, 0}));
  EXPECT_NEAR(found->noise, 1 + 0.0009 * 0.0009, 1e-6);
}

TEST(RoundWeightTest, ErrorsAreMeasured) {
  auto exact = RoundWeight({127, -5, 0}, {3}, {});
  ASSERT_TRUE(exact.ok());
  EXPECT_TRUE(std::isinf(exact->Decibels()));
  auto rough = RoundWeight({127, 0.5F}, {2}, {});
  ASSERT_TRUE(rough.ok());
  EXPECT_NEAR(rough->Decibels(), 10 * std::log10((127 * 127 + 0.25) / 0.25),
              1e-9);
}

TEST(RoundWeightTest, ZerosAndTinyNumbersHaveAScale) {
  auto found = RoundWeight({0, 0, std::numeric_limits<float>::denorm_min(), 0},
                           {2, 2}, {0});
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->values, (Bytes{0, 0, 0, 0}));
  EXPECT_EQ(found->scales, (Floats{1, 1}));
}

TEST(RoundWeightTest, RefusesNumbersThatAreNotFinite) {
  EXPECT_EQ(RoundWeight({1, INFINITY}, {2}, {}).status().message(),
            "expected finite numbers, found inf");
  EXPECT_FALSE(RoundWeight({NAN}, {1}, {}).ok());
}

}  // namespace
}  // namespace partita::quantize
