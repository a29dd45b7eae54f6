// Kernels of convolutions with windows on AMX, with the parts and the steps of
// split_kernels.h. Lines of lhs are pixels. A pixel's 32 values of a step are
// 64 bytes per part, and pixels that are neighbours in a row are neighbours in
// memory. So the 32 pixels that one tap of the window reads are one block of
// 2048 bytes, for each tap at another offset, and no pixel is copied twice.
#ifndef PARTITA_RUNTIME_CPU_SPLIT_CONV_KERNELS_H_
#define PARTITA_RUNTIME_CPU_SPLIT_CONV_KERNELS_H_

#include <cstdint>

#include "runtime/cpu/split_kernels.h"
#include "runtime/cpu/vector_activations.h"

namespace partita::cpu {

// Bytes of a pixel in one part of a step.
inline constexpr int64_t kSplitPixelBytes = 2 * kSplitDepth;

// Writes the three parts of up to kSplitDepth `channels` of `count` pixels,
// which are `pixel_stride` elements apart. Parts are `part_stride` bytes apart
// and aligned to 64. Missing channels are zero.
void SplitPixels(const float* pixels, int64_t pixel_stride, int64_t count,
                 int64_t channels, char* parts, int64_t part_stride);

// The sums of some steps, for kSplitLines neighbouring positions and as many
// outputs, and what becomes of them. The sums of the first steps replace
// `total`, and later ones are added to it. After the last steps, bias and
// residual are added, then the activation is computed, and the result is
// written.
struct SplitWindowTile {
  // Computes the sums of position `row` in f32, because they are infinite or
  // NaN: infinities have no parts.
  using Recompute = void (*)(const SplitWindowTile& tile, int64_t row,
                             float* sums);

  const float* sums = nullptr;  // [kSplitLines, kSplitLines], aligned to 64
  float* total = nullptr;       // the same
  bool first = false, last = false;
  int64_t rows = 0, columns = 0;
  // Per row: the pixel of the result, or -1 beyond the end of a row.
  const int32_t* places = nullptr;
  float* out = nullptr;  // of pixel 0; pixels are `out_stride` elements apart
  int64_t out_stride = 0;
  const float* residual = nullptr;      // as `out`, which it may be; null: none
  const float* bias = nullptr;          // [columns]; null: none
  VectorActivation activate = nullptr;  // null: none
  Recompute recompute = nullptr;
  // For `recompute`.
  const void* data = nullptr;
  int64_t image = 0, first_row = 0, panel = 0;
};

// The factors of a tile's sums: step i reads the pixels at `pixels` +
// offsets[i], in bytes, and the weight's step i.
struct SplitWindow {
  const char* pixels = nullptr;
  int64_t part_stride = 0;
  const int64_t* offsets = nullptr;  // one more than there are steps
  const char* weight = nullptr;
  int64_t steps = 0;
};

// Computes `sums`, aligned to 64. Meanwhile it finishes `finished`, whose sums
// are elsewhere, and fetches `fetch`.
void MultiplySplitWindow(const SplitWindow& window,
                         const SplitWindowTile& finished,
                         const SplitFetch& fetch, float* sums);

// Adds or writes the sums of a tile.
void FinishSplitWindow(const SplitWindowTile& tile);

// Adds the products of up to kSplitDepth `channels` of a pixel by a step of the
// weight to sums[kSplitLines], with f32 instructions.
void MultiplySplitPixel(const float* pixel, int64_t channels,
                        const char* weight, float* sums);

}  // namespace partita::cpu

#endif  // PARTITA_RUNTIME_CPU_SPLIT_CONV_KERNELS_H_
