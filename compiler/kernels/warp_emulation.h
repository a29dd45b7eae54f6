// Emulates a GPU's tensor cores in plain loops, so that tests need no GPU.
// Follows PTX's description of its fragments.
#ifndef PARTITA_COMPILER_KERNELS_WARP_EMULATION_H_
#define PARTITA_COMPILER_KERNELS_WARP_EMULATION_H_

#include <cstdint>

namespace partita::kernels {

inline constexpr int kLanesOfWarp = 32;

// Element 0 or 1 of a word with two bf16 or f16.
float elementOf(uint32_t word, int i, bool bf16);

// One thread's part of a product. A word holds two 16-bit elements, the first
// in the low half.
struct ProductOfLane {
  uint32_t left[4];
  uint32_t right[2];
  float sums[4];  // input and result
};
// mma.sync.m16n8k16 of bf16 or f16 elements with f32 sums. Sums are rounded
// once at the end; hardware may round in between.
void multiplyFragments(bool bf16, ProductOfLane* lanes[kLanesOfWarp]);
// The number of such products so far.
int64_t multipliedFragments();

// One thread's part of a product of floats.
struct FloatProductOfLane {
  float left[4];
  float right[2];
  float sums[4];  // input and result
};
// mma.sync.m16n8k8 with f32 sums, on f32 elements that are each split into two
// tf32. The products of the two small parts are left out.
void multiplyFloatFragments(bool, FloatProductOfLane* lanes[kLanesOfWarp]);

struct LoadOfLane {
  const char* row;  // 16 bytes
  uint32_t words[4];
};
// ldmatrix.m8n8.x4.b16, with or without .trans.
void loadMatrices(bool transposed, LoadOfLane* lanes[kLanesOfWarp]);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_WARP_EMULATION_H_
