// Rounds weights to integers or floats of 8 bits, and measures the error.
// round_groups.h rounds to 4 bits.
#ifndef PARTITA_COMPILER_QUANTIZE_ROUND_WEIGHT_H_
#define PARTITA_COMPILER_QUANTIZE_ROUND_WEIGHT_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

namespace partita::quantize {

// weight[i] is about scales[channel of i] * values[i].
struct RoundedWeight {
  // In [-127, 127], row-major as the weight; or bits of e4m3; or two integers
  // of 4 bits each.
  std::vector<int8_t> values;
  std::vector<float> scales;  // positive, one per channel; or one per group
  std::vector<int8_t> zeros;  // one per group; empty: none
  double signal = 0;          // sum of squares of the weight
  double noise = 0;           // sum of squares of the rounding errors

  // Ratio of signal to noise in decibels; infinite without an error.
  double Decibels() const;
};

enum class ByteFormat { kInteger, kE4M3 };

// Rounds a row-major tensor to nearest even with one scale per index of the
// dimensions `channels`, which are increasing: the largest magnitude becomes
// 127, or 448 of e4m3. InvalidArgument if a number is not finite.
absl::StatusOr<RoundedWeight> RoundWeight(
    const std::vector<float>& weight, const std::vector<int64_t>& shape,
    const std::vector<int64_t>& channels,
    ByteFormat format = ByteFormat::kInteger);

}  // namespace partita::quantize

#endif  // PARTITA_COMPILER_QUANTIZE_ROUND_WEIGHT_H_
