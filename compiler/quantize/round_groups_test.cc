#include "compiler/quantize/round_groups.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"

namespace partita::quantize {
namespace {

std::vector<float> Waves(int count, float offset = 0) {
  std::vector<float> values;
  for (int i = 0; i < count; ++i)
    values.push_back(std::sin(static_cast<float>(i * i + 1)) + offset);
  return values;
}

// The numbers that the integers stand for.
std::vector<float> Read(const RoundedWeight& rounded, int group) {
  std::vector<float> values;
  for (size_t i = 0; i < 2 * rounded.values.size(); ++i) {
    const size_t at = i / static_cast<size_t>(group);
    const int byte = static_cast<uint8_t>(rounded.values[i / 2]);
    const int integer = i % 2 == 0 ? byte & 15 : byte >> 4;
    const int zero = rounded.zeros.empty() ? 8 : rounded.zeros[at];
    values.push_back(rounded.scales[at] * static_cast<float>(integer - zero));
  }
  return values;
}

TEST(RoundGroupsTest, ErrorIsAtMostHalfAStepWithZeroPoints) {
  const std::vector<float> weight = Waves(64, 0.3F);
  const auto rounded = RoundGroups(weight, {16, /*asymmetric=*/true});
  ASSERT_TRUE(rounded.ok()) << rounded.status();
  EXPECT_EQ(rounded->values.size(), 32u);
  EXPECT_EQ(rounded->scales.size(), 4u);
  EXPECT_EQ(rounded->zeros.size(), 4u);
  const std::vector<float> read = Read(*rounded, 16);
  double noise = 0;
  for (size_t i = 0; i < weight.size(); ++i) {
    EXPECT_LE(std::abs(read[i] - weight[i]), 0.501F * rounded->scales[i / 16]);
    noise += std::pow(double{read[i]} - double{weight[i]}, 2);
  }
  EXPECT_NEAR(rounded->noise, noise, 1e-6);
}

TEST(RoundGroupsTest, KeepsTheReportedError) {
  const std::vector<float> weight = Waves(256);
  const auto rounded = RoundGroups(weight, {32});
  ASSERT_TRUE(rounded.ok()) << rounded.status();
  EXPECT_TRUE(rounded->zeros.empty());
  const std::vector<float> read = Read(*rounded, 32);
  double noise = 0, signal = 0;
  for (size_t i = 0; i < weight.size(); ++i) {
    noise += std::pow(double{read[i]} - double{weight[i]}, 2);
    signal += std::pow(double{weight[i]}, 2);
  }
  EXPECT_NEAR(rounded->noise, noise, 1e-6);
  EXPECT_NEAR(rounded->signal, signal, 1e-6);
  // An even error of a sixteenth of the range is 24 dB below it.
  EXPECT_GT(rounded->Decibels(), 20);
}

// Integers times a scale are read back without an error.
TEST(RoundGroupsTest, KeepsAGrid) {
  std::vector<float> weight;
  for (int i = 0; i < 32; ++i)
    weight.push_back(0.25F * static_cast<float>(i % 16 - 8));
  const auto rounded = RoundGroups(weight, {32});
  ASSERT_TRUE(rounded.ok()) << rounded.status();
  EXPECT_EQ(Read(*rounded, 32), weight);
  EXPECT_EQ(rounded->noise, 0);
}

TEST(RoundGroupsTest, ZerosHaveAScale) {
  for (const bool asymmetric : {false, true}) {
    const auto rounded =
        RoundGroups(std::vector<float>(32, 0), {16, asymmetric});
    ASSERT_TRUE(rounded.ok()) << rounded.status();
    for (const float scale : rounded->scales) EXPECT_EQ(scale, 1);
    EXPECT_EQ(Read(*rounded, 16), std::vector<float>(32, 0));
  }
}

TEST(RoundGroupsTest, RefusesNumbersThatAreNotFinite) {
  std::vector<float> weight(16, 1);
  weight[3] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(RoundGroups(weight, {16}).status().message(),
            "expected finite numbers, found inf");
}

TEST(RoundGroupsTest, PermutesDimensions) {
  EXPECT_EQ(Permuted({1, 2, 3, 4, 5, 6}, {2, 3}, {1, 0}),
            (std::vector<float>{1, 4, 2, 5, 3, 6}));
}

}  // namespace
}  // namespace partita::quantize
