// Chooses elements by magnitude.
#ifndef PARTITA_RUNTIME_BASE_SMALLEST_H_
#define PARTITA_RUNTIME_BASE_SMALLEST_H_

#include <vector>

namespace partita::base {

// Sets the round(share * n) of these n elements with the smallest magnitudes to
// zero; halves round to even numbers, as in Python. Of equal magnitudes, the
// first in the list go. The elements must be finite: NaN has no place in an
// order. `share` is in [0, 1].
void ZeroSmallest(const std::vector<float*>& elements, double share);

}  // namespace partita::base

#endif  // PARTITA_RUNTIME_BASE_SMALLEST_H_
