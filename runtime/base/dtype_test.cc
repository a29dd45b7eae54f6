// Conversions between element types.
#include "runtime/base/dtype.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "gtest/gtest.h"

namespace partita::base {
namespace {

TEST(DTypeTest, NamesAndSizes) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const DType dtype = static_cast<DType>(i);
    EXPECT_EQ(DTypeFromName(NameOf(dtype)), dtype);
    EXPECT_GE(SizeOf(dtype), 1);
  }
  EXPECT_FALSE(DTypeFromName("f4").has_value());
  EXPECT_EQ(TypeName(DType::kBF16, {2, 3}), "bf16[2,3]");
  EXPECT_EQ(TypeName(DType::kI1, {}), "i1[]");
}

TEST(DTypeTest, Counts) {
  EXPECT_EQ(ByteCount(DType::kF64, {3, 5}), 120);
  EXPECT_EQ(ByteCount(DType::kF64, {}), 8);
  EXPECT_EQ(ByteCount(DType::kF64, {0, 7}), 0);
  EXPECT_FALSE(ByteCount(DType::kF64, {-1}).has_value());
  EXPECT_FALSE(ByteCount(DType::kF64, {int64_t{1} << 60}).has_value());
  EXPECT_FALSE(ElementCount({int64_t{1} << 40, int64_t{1} << 40}).has_value());
}

// Every bit pattern; the compiler's own half type is the oracle.
TEST(DTypeTest, HalvesRoundTrip) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    _Float16 half;
    const uint16_t pattern = static_cast<uint16_t>(bits);
    std::memcpy(&half, &pattern, 2);
    const float value = HalfToFloat(pattern);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(static_cast<float>(half)));
      EXPECT_TRUE(std::isnan(HalfToFloat(FloatToHalf(value))));
      continue;
    }
    ASSERT_EQ(value, static_cast<float>(half)) << bits;
    ASSERT_EQ(std::signbit(value), std::signbit(static_cast<float>(half)))
        << bits;
    ASSERT_EQ(FloatToHalf(value), pattern);
  }
}

TEST(DTypeTest, HalvesRoundToNearestEven) {
  // Around every boundary between two halves, and beyond the largest.
  for (uint32_t bits = 0; bits < 0x7c00; ++bits) {
    const float low = HalfToFloat(static_cast<uint16_t>(bits));
    const float high = bits == 0x7bff
                           ? 65536.0f
                           : HalfToFloat(static_cast<uint16_t>(bits + 1));
    const float middle = low + (high - low) / 2;
    for (const float value :
         {std::nextafter(middle, 0.0f), middle, std::nextafter(middle, 1e6f)}) {
      const _Float16 expected = static_cast<_Float16>(value);
      uint16_t pattern;
      std::memcpy(&pattern, &expected, 2);
      ASSERT_EQ(FloatToHalf(value), pattern) << value;
      ASSERT_EQ(FloatToHalf(-value), pattern | 0x8000) << value;
    }
  }
}

TEST(DTypeTest, BFloat16RoundsToNearestEven) {
  EXPECT_EQ(FloatToBFloat16(1.0f), 0x3f80);
  EXPECT_EQ(FloatToBFloat16(1.00390625f), 0x3f80);  // halfway, to even
  EXPECT_EQ(FloatToBFloat16(1.01171875f), 0x3f82);  // halfway, to even
  EXPECT_EQ(FloatToBFloat16(1.00390637f), 0x3f81);
  EXPECT_EQ(FloatToBFloat16(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_EQ(FloatToBFloat16(-std::numeric_limits<float>::infinity()), 0xff80);
  EXPECT_TRUE(std::isnan(BFloat16ToFloat(
      FloatToBFloat16(std::numeric_limits<float>::quiet_NaN()))));
}

template <typename To>
To ConvertOne(DType from, const void* source, DType to) {
  To value;
  Convert(from, source, to, &value, 1);
  return value;
}

TEST(DTypeTest, FloatsToIntegersSaturate) {
  const auto convert = [](double value, DType to) {
    int64_t result = 0;
    Convert(DType::kF64, &value, to, &result, 1);
    return result;
  };
  EXPECT_EQ(convert(1e300, DType::kI64), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(convert(-1e300, DType::kI64), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(convert(std::nan(""), DType::kI64), 0);
  EXPECT_EQ(convert(300.0, DType::kU8), 255);
  EXPECT_EQ(convert(-3.0, DType::kU8), 0);
  EXPECT_EQ(convert(2.9, DType::kI32), 2);
  EXPECT_EQ(convert(0.5, DType::kI1), 1);
  EXPECT_EQ(convert(0.0, DType::kI1), 0);
}

TEST(DTypeTest, EveryPairConverts) {
  for (int from = 0; from < kDTypeCount; ++from) {
    const double values[] = {0, 1};
    char source[16], target[16];
    Convert(DType::kF64, values, static_cast<DType>(from), source, 2);
    for (int to = 0; to < kDTypeCount; ++to) {
      Convert(static_cast<DType>(from), source, static_cast<DType>(to), target,
              2);
      EXPECT_EQ(ElementAsDouble(static_cast<DType>(to), target, 0), 0)
          << from << to;
      EXPECT_EQ(ElementAsDouble(static_cast<DType>(to), target, 1), 1)
          << from << to;
    }
  }
}

TEST(DTypeTest, AnyByteButZeroIsTrue) {
  const uint8_t byte = 0x80;
  EXPECT_EQ(ConvertOne<float>(DType::kI1, &byte, DType::kF32), 1.0f);
}

}  // namespace
}  // namespace partita::base
