// Checks distributions, and that parts of a tensor do not depend on how it is
// cut.
#include "runtime/base/random_fill.h"

#include <cmath>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace partita::base {
namespace {

std::vector<float> Make(const Fill& fill, int64_t first, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  EXPECT_TRUE(
      FillElements(fill, DType::kF32, first, count, values.data()).ok());
  return values;
}

TEST(RandomFillTest, WordsAreTheDocumentedOnes) {
  // SplitMix64 from state mix(0) = 0: the published first outputs of that
  // generator for seed 0.
  EXPECT_EQ(RandomWord(0, 0), 0xE220A8397B1DCDAFu);
  EXPECT_EQ(RandomWord(0, 1), 0x6E789E6AA1B965F4u);
  EXPECT_EQ(RandomWord(0, 2), 0x06C45D188009454Fu);
  EXPECT_NE(RandomWord(1, 0), RandomWord(0, 0));
}

TEST(RandomFillTest, NormalsAreQuantiles) {
  // The distribution function inverts the quantile.
  for (uint64_t i = 0; i < 20000; ++i) {
    const double u =
        (static_cast<double>(RandomWord(5, i) >> 32) + 0.5) * 0x1p-32;
    const double back = 0.5 * std::erfc(-RandomNormal(5, i) / std::sqrt(2.0));
    ASSERT_NEAR(back / u, 1.0, 1e-12) << i;
  }
}

TEST(RandomFillTest, MomentsAreRight) {
  const int64_t count = 1000000;
  double sum = 0, squares = 0, fourth = 0;
  for (const float value : Make({"normal", 2.0, 7}, 0, count)) {
    sum += value;
    squares += static_cast<double>(value) * value;
    fourth += std::pow(value / 2.0, 4);
  }
  EXPECT_NEAR(sum / count, 0.0, 0.01);
  EXPECT_NEAR(squares / count, 4.0, 0.03);
  EXPECT_NEAR(fourth / count, 3.0, 0.05);
  float low = 0, high = 0;
  sum = 0;
  for (const float value : Make({"uniform", 3.0, 7}, 0, count)) {
    low = std::min(low, value);
    high = std::max(high, value);
    sum += value;
  }
  EXPECT_NEAR(low, -3.0, 1e-4);
  EXPECT_NEAR(high, 3.0, 1e-4);
  EXPECT_NEAR(sum / count, 0.0, 0.01);
}

TEST(RandomFillTest, PartsAreThoseOfTheWhole) {
  for (const char* kind : {"normal", "uniform"}) {
    const Fill fill = {kind, 1.0, 3};
    const std::vector<float> whole =
        Make(fill, 0, 700000);  // enough for several threads
    for (const int64_t first : {0, 1, 4095, 4096, 350000, 699990}) {
      const std::vector<float> part = Make(fill, first, 10);
      for (size_t i = 0; i < 10; ++i)
        ASSERT_EQ(part[i], whole[static_cast<size_t>(first) + i])
            << kind << first;
    }
  }
}

TEST(RandomFillTest, ConstantsWorkForEveryType) {
  int64_t values[3] = {7, 7, 7};
  ASSERT_TRUE(FillElements({"ones"}, DType::kI64, 0, 2, values).ok());
  EXPECT_EQ(values[1], 1);
  EXPECT_EQ(values[2], 7);
  ASSERT_TRUE(FillElements({"zeros"}, DType::kI64, 0, 2, values).ok());
  EXPECT_EQ(values[0], 0);
}

TEST(RandomFillTest, UnknownKindsAreRefused) {
  float value;
  EXPECT_EQ(FillElements({"magic"}, DType::kF32, 0, 1, &value).message(),
            "expected zeros, ones, or for floating-point types normal or "
            "uniform; found 'magic' for f32");
  int32_t integer;
  EXPECT_TRUE(absl::IsInvalidArgument(
      FillElements({"normal"}, DType::kI32, 0, 1, &integer)));
}

}  // namespace
}  // namespace partita::base
