// Element types and their sizes, names and conversions.
#ifndef PARTITA_RUNTIME_BASE_DTYPE_H_
#define PARTITA_RUNTIME_BASE_DTYPE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace partita::base {

// Numbered as program.fbs numbers them. kI1 is stored as one byte, 0 or 1.
enum class DType : int8_t {
  kF32 = 0,
  kF64,
  kF16,
  kBF16,
  kI1,
  kI8,
  kI16,
  kI32,
  kI64,
  kU8,
  kU16,
  kU32,
  kU64,
  kF8E4M3,  // no infinities, one NaN ("FN"); largest number 448
  kF8E5M2   // largest number 57344
};
inline constexpr int kDTypeCount = 15;

// Bytes of one element.
int64_t SizeOf(DType dtype);
// "f32", "bf16", "i1", "u8", "f8E4M3FN" ...
const char* NameOf(DType dtype);
std::optional<DType> DTypeFromName(std::string_view name);
bool IsFloat(DType dtype);

// Product of the sizes, or of the sizes and the element size. Empty if a size
// is negative, or if the product of the non-zero sizes overflows.
std::optional<int64_t> ElementCount(const std::vector<int64_t>& shape);
std::optional<int64_t> ByteCount(DType dtype,
                                 const std::vector<int64_t>& shape);

// "f32[2,3]"
std::string TypeName(DType dtype, const std::vector<int64_t>& shape);

float HalfToFloat(uint16_t bits);
uint16_t FloatToHalf(float value);
inline float BFloat16ToFloat(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  __builtin_memcpy(&value, &wide, sizeof(value));
  return value;
}
// Rounds to nearest even; NaN stays NaN.
uint16_t FloatToBFloat16(float value);
// Numbers of 8 bits (Micikevicius et al., "FP8 Formats for Deep Learning").
// Rounding is to nearest even. Numbers beyond the largest become NaN in e4m3
// and infinite in e5m2, as in ml_dtypes.
float Float8E4M3ToFloat(uint8_t bits);
uint8_t FloatToFloat8E4M3(float value);
float Float8E5M2ToFloat(uint8_t bits);
uint8_t FloatToFloat8E5M2(float value);

// Element `index` of an array as a double (64-bit integers beyond 2^53 are
// rounded).
double ElementAsDouble(DType dtype, const void* data, int64_t index);

// Converts `count` elements. Floats round to nearest even; floats to integers
// truncate and saturate; to i1, non-zero is 1.
void Convert(DType from, const void* source, DType to, void* target,
             int64_t count);

}  // namespace partita::base

#endif  // PARTITA_RUNTIME_BASE_DTYPE_H_
