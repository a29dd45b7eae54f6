// Products of f32 on the matrix units of CPUs with AMX, which multiply bf16. A
// factor is the exact sum of three bf16, and a product is the sum of the six
// largest of their nine products. The three that are left out are less than
// 2^-24 of the product, and sums are f32, so that the result is as exact as
// with f32 instructions, except for tiny numbers: AMX takes factors and results
// below 2^-126 as zero. Factors or products below 2^-110 have 16 exact
// bits, and those below 2^-118 at most 8.
#ifndef PARTITA_RUNTIME_CPU_SPLIT_KERNELS_H_
#define PARTITA_RUNTIME_CPU_SPLIT_KERNELS_H_

#include <cstdint>

#include "runtime/cpu/vector_activations.h"

namespace partita::cpu {

// A panel is this many rows of lhs or columns of rhs (its lines). A tile is the
// product of two panels.
inline constexpr int64_t kSplitLines = 32;
// A panel's depth (k) is padded with zeros to a multiple of this.
inline constexpr int64_t kSplitDepth = 32;
inline constexpr int64_t kSplitStepBytes = 3 * 2 * kSplitLines * kSplitDepth;

// Lines of a matrix. One of the strides, in elements, is 1.
struct SplitLines {
  const float* data = nullptr;
  int64_t line_stride = 0, depth_stride = 0;
};

// A tile of sums, and the place of its `rows` x `columns` in the result: rows
// `out_stride` elements apart. `initial` is added, with rows as far apart, and
// may be `out` itself; null adds nothing. Then bias[column], if not null, is
// added, and the activation, if not null, is computed.
struct SplitTile {
  const float* sums = nullptr;  // [kSplitLines, kSplitLines], aligned to 64
  int64_t rows = 0, columns = 0;
  float* out = nullptr;
  int64_t out_stride = 0;
  const float* initial = nullptr;
  const float* bias = nullptr;
  VectorActivation activate = nullptr;
  // The factors: rows of sums that are infinite or NaN are computed again with
  // f32 instructions, because infinities have no parts.
  SplitLines lhs, rhs;
  int64_t depth = 0;
};

// True if this CPU and its operating system let the process use AMX. Any thread
// may call it.
bool HasSplitKernels();

// Each thread calls ConfigureTiles before it multiplies and ReleaseTiles after.
void ConfigureTiles();
void ReleaseTiles();

// Copies up to kSplitLines lines, `depth` deep, into a panel of
// ceil(depth / kSplitDepth) * kSplitStepBytes bytes, aligned to 64. Missing
// lines are zero.
void PackSplitLhs(const SplitLines& rows, int64_t lines, int64_t depth,
                  char* panel);
void PackSplitRhs(const SplitLines& columns, int64_t lines, int64_t depth,
                  char* panel);

// Memory to fetch into the second-level cache, because it is read soon.
struct SplitFetch {
  const char* data = nullptr;
  int64_t bytes = 0;
};

// Computes sums[row * kSplitLines + column], aligned to 64, of two panels of
// `steps` > 0 steps. Meanwhile it writes `finished`, whose sums are elsewhere,
// fetches the place of `next`, whose sums it computes, and fetches `fetch`.
void MultiplySplit(const char* lhs, const char* rhs, int64_t steps,
                   const SplitTile& finished, const SplitTile& next,
                   const SplitFetch& fetch, float* sums);

// Writes a tile.
void WriteSplitTile(const SplitTile& tile);

}  // namespace partita::cpu

#endif  // PARTITA_RUNTIME_CPU_SPLIT_KERNELS_H_
