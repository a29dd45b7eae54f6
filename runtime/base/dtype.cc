// Element types: a table of names and sizes, and conversions between any two.
#include "runtime/base/dtype.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace partita::base {
namespace {

struct Info {
  const char* name;
  int64_t size;
};
constexpr Info kInfo[kDTypeCount] = {
    {"f32", 4}, {"f64", 8}, {"f16", 2}, {"bf16", 2},     {"i1", 1},
    {"i8", 1},  {"i16", 2}, {"i32", 4}, {"i64", 8},      {"u8", 1},
    {"u16", 2}, {"u32", 4}, {"u64", 8}, {"f8E4M3FN", 1}, {"f8E5M2", 1}};

// Storage types of the floats that C++ 17 lacks.
struct Half {
  uint16_t bits;
};
struct BFloat16 {
  uint16_t bits;
};
struct Float8E4M3 {
  uint8_t bits;
};
struct Float8E5M2 {
  uint8_t bits;
};

template <typename T>
auto Load(const void* data, int64_t index) {
  // A byte other than 0 and 1 is no valid bool, but files may hold one.
  std::conditional_t<std::is_same_v<T, bool>, uint8_t, T> value;
  std::memcpy(
      &value,
      static_cast<const char*>(data) + index * static_cast<int64_t>(sizeof(T)),
      sizeof(T));
  if constexpr (std::is_same_v<T, bool>) {
    return value != 0;
  } else if constexpr (std::is_same_v<T, Half>) {
    return HalfToFloat(value.bits);
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return BFloat16ToFloat(value.bits);
  } else if constexpr (std::is_same_v<T, Float8E4M3>) {
    return Float8E4M3ToFloat(value.bits);
  } else if constexpr (std::is_same_v<T, Float8E5M2>) {
    return Float8E5M2ToFloat(value.bits);
  } else {
    return value;
  }
}

template <typename T, typename From>
T Saturate(From value) {
  if constexpr (std::is_floating_point_v<From>) {
    if (std::isnan(value)) return 0;
    // The bounds are powers of two (or their neighbours), exact as long double.
    if (static_cast<long double>(value) <=
        static_cast<long double>(std::numeric_limits<T>::min())) {
      return std::numeric_limits<T>::min();
    }
    if (static_cast<long double>(value) >=
        static_cast<long double>(std::numeric_limits<T>::max())) {
      return std::numeric_limits<T>::max();
    }
  }
  return static_cast<T>(value);
}

template <typename T, typename From>
void Store(From value, void* data, int64_t index) {
  T stored;
  if constexpr (std::is_same_v<T, Half>) {
    stored.bits = FloatToHalf(static_cast<float>(value));
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    stored.bits = FloatToBFloat16(static_cast<float>(value));
  } else if constexpr (std::is_same_v<T, Float8E4M3>) {
    stored.bits = FloatToFloat8E4M3(static_cast<float>(value));
  } else if constexpr (std::is_same_v<T, Float8E5M2>) {
    stored.bits = FloatToFloat8E5M2(static_cast<float>(value));
  } else if constexpr (std::is_same_v<T, bool>) {
    stored = value != From{0};
  } else if constexpr (std::is_integral_v<T>) {
    stored = Saturate<T>(value);
  } else {
    stored = static_cast<T>(value);
  }
  std::memcpy(
      static_cast<char*>(data) + index * static_cast<int64_t>(sizeof(T)),
      &stored, sizeof(T));
}

// Calls function(T{}) with the storage type of `dtype`.
template <typename Function>
void WithStorage(DType dtype, const Function& function) {
  switch (dtype) {
    case DType::kF32:
      return function(float{});
    case DType::kF64:
      return function(double{});
    case DType::kF16:
      return function(Half{});
    case DType::kBF16:
      return function(BFloat16{});
    case DType::kI1:
      return function(bool{});
    case DType::kI8:
      return function(int8_t{});
    case DType::kI16:
      return function(int16_t{});
    case DType::kI32:
      return function(int32_t{});
    case DType::kI64:
      return function(int64_t{});
    case DType::kU8:
      return function(uint8_t{});
    case DType::kU16:
      return function(uint16_t{});
    case DType::kU32:
      return function(uint32_t{});
    case DType::kU64:
      return function(uint64_t{});
    case DType::kF8E4M3:
      return function(Float8E4M3{});
    case DType::kF8E5M2:
      return function(Float8E5M2{});
  }
}

// A format of 8 bits: a sign, an exponent and a fraction.
struct Format8 {
  int fraction_bits;
  int bias;            // of the exponent
  uint32_t overflow;   // the code of numbers that are too large
  uint32_t first_nan;  // the least code of a NaN
};
constexpr Format8 kE4M3 = {3, 7, 0x7f, 0x7f};
constexpr Format8 kE5M2 = {2, 15, 0x7c, 0x7d};

uint32_t BitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

float DecodeFloat8(const Format8& format, uint8_t bits) {
  const uint32_t code = bits & 0x7f;
  const int exponent = static_cast<int>(code) >> format.fraction_bits;
  const int hidden = 1 << format.fraction_bits;
  const int fraction = static_cast<int>(code) & (hidden - 1);
  float value = std::ldexp(
      static_cast<float>(exponent == 0 ? fraction : fraction + hidden),
      std::max(exponent, 1) - format.bias - format.fraction_bits);
  if (code >= format.first_nan)
    value = std::numeric_limits<float>::quiet_NaN();
  else if (code >= format.overflow)
    value = std::numeric_limits<float>::infinity();
  return (bits & 0x80) ? -value : value;
}

uint8_t EncodeFloat8(const Format8& format, float value) {
  const uint32_t bits = BitsOf(value);
  const auto sign = static_cast<uint8_t>((bits >> 24) & 0x80);
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return sign | 0x7f;
  const int dropped = 23 - format.fraction_bits;
  const uint32_t least_normal = static_cast<uint32_t>(128 - format.bias) << 23;
  uint32_t code;
  if (magnitude < least_normal) {
    // The unit in the last place of this sum is the least number of the format,
    // and the hardware rounds to nearest even.
    const float aligned =
        std::ldexp(1.0f, 24 - format.bias - format.fraction_bits);
    code = BitsOf(std::fabs(value) + aligned) - BitsOf(aligned);
  } else {
    const uint32_t odd = (magnitude >> dropped) & 1;
    const uint32_t half = (uint32_t{1} << (dropped - 1)) - 1;
    const uint32_t base = static_cast<uint32_t>(127 - format.bias) << 23;
    code = (magnitude - base + half + odd) >> dropped;
  }
  return sign | static_cast<uint8_t>(std::min(code, format.overflow));
}

}  // namespace

int64_t SizeOf(DType dtype) { return kInfo[static_cast<int>(dtype)].size; }

const char* NameOf(DType dtype) { return kInfo[static_cast<int>(dtype)].name; }

std::optional<DType> DTypeFromName(std::string_view name) {
  for (int i = 0; i < kDTypeCount; ++i) {
    if (name == kInfo[i].name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

bool IsFloat(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF64 || dtype == DType::kF16 ||
         dtype == DType::kBF16 || dtype == DType::kF8E4M3 ||
         dtype == DType::kF8E5M2;
}

std::optional<int64_t> ElementCount(const std::vector<int64_t>& shape) {
  // Strides are products of some of the sizes: they must not overflow either,
  // even where another size is zero.
  int64_t count = 1;
  bool empty = false;
  for (const int64_t size : shape) {
    empty = empty || size == 0;
    if (size < 0 || __builtin_mul_overflow(count, size == 0 ? 1 : size, &count))
      return std::nullopt;
  }
  return empty ? 0 : count;
}

std::optional<int64_t> ByteCount(DType dtype,
                                 const std::vector<int64_t>& shape) {
  std::vector<int64_t> bytes = shape;
  bytes.push_back(SizeOf(dtype));
  return ElementCount(bytes);
}

std::string TypeName(DType dtype, const std::vector<int64_t>& shape) {
  return absl::StrCat(NameOf(dtype), "[", absl::StrJoin(shape, ","), "]");
}

float HalfToFloat(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1f;
  const uint32_t fraction = bits & 0x3ff;
  if (exponent == 0) {
    const float magnitude = std::ldexp(static_cast<float>(fraction), -24);
    return sign ? -magnitude : magnitude;
  }
  const uint32_t wide =
      exponent == 31 ? sign | 0x7f800000 | (fraction << 13)
                     : sign | ((exponent + 112) << 23) | (fraction << 13);
  float value;
  std::memcpy(&value, &wide, sizeof(value));
  return value;
}

uint16_t FloatToHalf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  const uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return sign | 0x7e00;  // NaN
  if (magnitude >= 0x477ff000)
    return sign | 0x7c00;        // rounds to infinity from 65520 on
  if (magnitude < 0x38800000) {  // below 2^-14: a multiple of 2^-24
    // Adding 0.5 aligns the unit in the last place to 2^-24, and the hardware
    // rounds to nearest even.
    float shifted;
    std::memcpy(&shifted, &magnitude, sizeof(shifted));
    shifted += 0.5f;
    std::memcpy(&bits, &shifted, sizeof(bits));
    return sign | static_cast<uint16_t>(bits - 0x3f000000);
  }
  const uint32_t odd = (magnitude >> 13) & 1;
  return sign |
         static_cast<uint16_t>((magnitude - 0x38000000 + 0xfff + odd) >> 13);
}

uint16_t FloatToBFloat16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  if ((bits & 0x7fffffff) > 0x7f800000)
    return static_cast<uint16_t>(bits >> 16) | 0x40;
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

float Float8E4M3ToFloat(uint8_t bits) { return DecodeFloat8(kE4M3, bits); }
uint8_t FloatToFloat8E4M3(float value) { return EncodeFloat8(kE4M3, value); }
float Float8E5M2ToFloat(uint8_t bits) { return DecodeFloat8(kE5M2, bits); }
uint8_t FloatToFloat8E5M2(float value) { return EncodeFloat8(kE5M2, value); }

double ElementAsDouble(DType dtype, const void* data, int64_t index) {
  double value = 0;
  WithStorage(dtype, [&](auto storage) {
    value = static_cast<double>(Load<decltype(storage)>(data, index));
  });
  return value;
}

void Convert(DType from, const void* source, DType to, void* target,
             int64_t count) {
  if (from == to) {
    if (count > 0)
      std::memcpy(target, source, static_cast<size_t>(count * SizeOf(from)));
    return;
  }
  WithStorage(from, [&](auto input) {
    WithStorage(to, [&](auto output) {
      for (int64_t i = 0; i < count; ++i)
        Store<decltype(output)>(Load<decltype(input)>(source, i), target, i);
    });
  });
}

}  // namespace partita::base
