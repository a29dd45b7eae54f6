// What a GPU's tensor cores do, in plain loops, after PTX's description of its
// fragments: for tests on machines without a GPU.
#ifndef PARTITA_COMPILER_KERNELS_WARP_EMULATION_H_
#define PARTITA_COMPILER_KERNELS_WARP_EMULATION_H_

#include <cstdint>

namespace partita::kernels {

inline constexpr int kLanesOfWarp = 32;

// Element 0 or 1 of a word of two, bf16 or f16.
float elementOf(uint32_t word, int i, bool bf16);

// Of one thread; words hold two 16-bit elements, the first in the low half.
struct ProductOfLane {
  uint32_t left[4];
  uint32_t right[2];
  float sums[4];  // and then the result
};
// mma.sync.m16n8k16 of f32 sums and bf16 or f16 elements. Products are summed
// without rounding, which hardware need not do.
void multiplyFragments(bool bf16, ProductOfLane* lanes[kLanesOfWarp]);

// Of one thread, of floats.
struct FloatProductOfLane {
  float left[4];
  float right[2];
  float sums[4];  // and then the result
};
// mma.sync.m16n8k8 of f32 sums and elements that are each the sum of two of
// tf32, without the products of the second ones.
void multiplyFloatFragments(bool, FloatProductOfLane* lanes[kLanesOfWarp]);

struct LoadOfLane {
  const char* row;  // 16 bytes
  uint32_t words[4];
};
// ldmatrix.m8n8.x4.b16, with or without .trans.
void loadMatrices(bool transposed, LoadOfLane* lanes[kLanesOfWarp]);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_WARP_EMULATION_H_
