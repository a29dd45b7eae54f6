// Counts numbers that are not 0.
#include "runtime/cuda/two_of_four.h"

namespace partita::cuda {

bool AreTwoOfFour(const uint16_t* data, int64_t count, int64_t group_stride,
                  int64_t stride) {
  for (int64_t group = 0; group < count; ++group) {
    int numbers = 0;
    for (int64_t i = 0; i < 4; ++i) {
      const uint16_t bits = data[group * group_stride + i * stride];
      // -0 is 0.
      numbers += (bits & 0x7fff) != 0 ? 1 : 0;
    }
    if (numbers > 2) return false;
  }
  return true;
}

}  // namespace partita::cuda
