// The precisions of matrix products.
#ifndef PARTITA_COMPILER_CORE_PRECISION_H_
#define PARTITA_COMPILER_CORE_PRECISION_H_

#include <array>
#include <cstddef>
#include <string>

namespace partita::core {

// kF32 may run on tensor cores as tf32. kF8 is kBF16 with linear layers whose
// products take factors of 8 bits: e4m3, and e5m2 for gradients.
enum class Precision { kF32, kBF16, kF16, kF8 };

// Indexed by Precision.
inline constexpr std::array<const char*, 4> kPrecisionNames = {"f32", "bf16",
                                                               "f16", "f8"};
inline constexpr int kPrecisions = static_cast<int>(kPrecisionNames.size());

inline std::string ToString(Precision precision) {
  return kPrecisionNames[static_cast<size_t>(precision)];
}

// Bytes per element of parameters and activations. Neither is stored in
// 8 bits; products round their operands to it.
inline int ElementBytes(Precision precision) {
  return precision == Precision::kF32 ? 4 : 2;
}

}  // namespace partita::core

#endif  // PARTITA_COMPILER_CORE_PRECISION_H_
