// Selects positions, since pointers tell nothing about the order of the list.
#include "runtime/base/smallest.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>

namespace partita::base {

void ZeroSmallest(const std::vector<float*>& elements, double share) {
  const auto count = static_cast<int64_t>(
      std::nearbyint(share * static_cast<double>(elements.size())));
  if (count == 0) return;
  std::vector<int64_t> positions(elements.size());
  std::iota(positions.begin(), positions.end(), int64_t{0});
  std::nth_element(positions.begin(), positions.begin() + (count - 1),
                   positions.end(), [&](int64_t a, int64_t b) {
                     const float x = std::abs(*elements[a]),
                                 y = std::abs(*elements[b]);
                     return x != y ? x < y : a < b;
                   });
  for (int64_t i = 0; i < count; ++i) *elements[positions[i]] = 0;
}

}  // namespace partita::base
