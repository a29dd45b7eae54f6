// Rounds weights to integers of 4 bits with a scale per group.
#ifndef PARTITA_COMPILER_QUANTIZE_ROUND_GROUPS_H_
#define PARTITA_COMPILER_QUANTIZE_ROUND_GROUPS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/quantize/round_weight.h"

namespace partita::quantize {

// The smallest size of a group.
inline constexpr int64_t kLeastGroup = 32;

struct GroupOptions {
  int64_t group = 64;       // even; numbers that share a scale
  bool asymmetric = false;  // groups have zero points, too
};

// Rounds each `group` consecutive numbers to integers from 0 to 15, as nn's
// dequantize reads them: two per byte, with one scale per group, which may be
// negative, and zeros only if asymmetric. The number of weights is a multiple
// of the group. Without zero points, the scale is the one of a few candidates
// that leaves the smallest error. InvalidArgument if a number is not finite.
absl::StatusOr<RoundedWeight> RoundGroups(const std::vector<float>& weight,
                                          const GroupOptions& options);

// Reorders a row-major tensor: dimension i of the result is dimension perm[i].
std::vector<float> Permuted(const std::vector<float>& numbers,
                            const std::vector<int64_t>& shape,
                            const std::vector<int64_t>& perm);

}  // namespace partita::quantize

#endif  // PARTITA_COMPILER_QUANTIZE_ROUND_GROUPS_H_
