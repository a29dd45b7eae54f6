// The 2:4 pattern of pruned weights, which GPUs multiply at twice the rate.
// Plain data.
#ifndef PARTITA_RUNTIME_CUDA_TWO_OF_FOUR_H_
#define PARTITA_RUNTIME_CUDA_TWO_OF_FOUR_H_

#include <cstdint>

namespace partita::cuda {

// True if two at most of four consecutive numbers of 16 bits are not 0, in each
// of `count` groups. Number i of group g is at
// data[g * group_stride + i * stride].
bool AreTwoOfFour(const uint16_t* data, int64_t count, int64_t group_stride,
                  int64_t stride);

}  // namespace partita::cuda

#endif  // PARTITA_RUNTIME_CUDA_TWO_OF_FOUR_H_
