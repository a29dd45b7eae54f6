// Tiles 0 to 3 hold sums, 4 and 5 a part of the pixels, 6 and 7 a part of the
// weight.
#include "runtime/cpu/split_conv_kernels.h"

#include <algorithm>

#include "runtime/cpu/split_parts.h"

namespace partita::cpu {
namespace {

constexpr int64_t kFetchedBytes = 64;  // a line of the cache

PARTITA_AMX_INLINE void WriteRow(const SplitWindowTile& tile, int64_t row,
                                 __m512 low, __m512 high) {
  if (tile.places[row] < 0) return;
  if (HasNanOrInfinity(low) || HasNanOrInfinity(high)) {
    alignas(64) float sums[kSplitLines] = {};
    tile.recompute(tile, row, sums);
    low = _mm512_load_ps(sums);
    high = _mm512_load_ps(sums + kLanes);
  }
  const __mmask16 low_mask = LaneMask(tile.columns),
                  high_mask = LaneMask(tile.columns - kLanes);
  if (tile.bias != nullptr) {
    low = _mm512_add_ps(low, _mm512_maskz_loadu_ps(low_mask, tile.bias));
    high = _mm512_add_ps(high,
                         _mm512_maskz_loadu_ps(high_mask, tile.bias + kLanes));
  }
  const int64_t place = tile.places[row] * tile.out_stride;
  if (tile.residual != nullptr) {
    const float* const residual = tile.residual + place;
    low = _mm512_add_ps(low, _mm512_maskz_loadu_ps(low_mask, residual));
    high = _mm512_add_ps(high,
                         _mm512_maskz_loadu_ps(high_mask, residual + kLanes));
  }
  if (tile.activate != nullptr) {
    alignas(64) float values[kSplitLines];
    _mm512_store_ps(values, low);
    _mm512_store_ps(values + kLanes, high);
    tile.activate(values, kSplitLines / kLanes);
    low = _mm512_load_ps(values);
    high = _mm512_load_ps(values + kLanes);
  }
  _mm512_mask_storeu_ps(tile.out + place, low_mask, low);
  _mm512_mask_storeu_ps(tile.out + place + kLanes, high_mask, high);
}

PARTITA_AMX_INLINE void FinishRow(const SplitWindowTile& tile, int64_t row) {
  const int64_t place = row * kSplitLines;
  __m512 low = _mm512_load_ps(tile.sums + place),
         high = _mm512_load_ps(tile.sums + place + kLanes);
  if (!tile.first) {
    low = _mm512_add_ps(low, _mm512_load_ps(tile.total + place));
    high = _mm512_add_ps(high, _mm512_load_ps(tile.total + place + kLanes));
  }
  if (tile.last) {
    WriteRow(tile, row, low, high);
  } else {
    _mm512_store_ps(tile.total + place, low);
    _mm512_store_ps(tile.total + place + kLanes, high);
  }
}

// Finishes the next `count` rows of `finished`, and fetches the next
// `fetch_bytes` bytes up to `fetch_end`.
struct RowsInTurn {
  const SplitWindowTile& finished;
  const int64_t count;
  const char* fetch;
  const char* const fetch_end;
  const int64_t fetch_bytes;
  int64_t row = 0;

  PARTITA_AMX_INLINE void Run() {
    for (const char* const turn_end =
             fetch + std::min(fetch_bytes, fetch_end - fetch);
         fetch < turn_end; fetch += kFetchedBytes)
      _mm_prefetch(fetch, _MM_HINT_T1);
    for (const int64_t end = std::min(row + count, finished.rows); row < end;
         ++row)
      FinishRow(finished, row);
  }
};

// Half a step of the weight, as f32: `half` 0 has the even depths of 16
// columns.
PARTITA_AMX_INLINE __m512 WeightOf(const char* tile, int half) {
  __m512 sum = _mm512_setzero_ps();
#pragma GCC unroll 3
  for (int part = 2; part >= 0; --part) {
    const __m512i pairs = _mm512_load_si512(tile + part * 2 * kTileBytes);
    const __m512i bits =
        half == 0 ? _mm512_slli_epi32(pairs, 16)
                  : _mm512_and_si512(
                        pairs, _mm512_set1_epi32(static_cast<int>(0xffff0000)));
    sum = _mm512_add_ps(sum, _mm512_castsi512_ps(bits));
  }
  return sum;
}

}  // namespace

PARTITA_AMX void SplitPixels(const float* pixels, int64_t pixel_stride,
                             int64_t count, int64_t channels, char* parts,
                             int64_t part_stride) {
  const __mmask16 low_mask = LaneMask(channels),
                  high_mask = LaneMask(channels - kLanes);
  for (int64_t i = 0; i < count; ++i) {
    const float* const pixel = pixels + i * pixel_stride;
    StoreParts(_mm512_maskz_loadu_ps(low_mask, pixel),
               _mm512_maskz_loadu_ps(high_mask, pixel + kLanes),
               parts + i * kSplitPixelBytes, part_stride);
  }
}

// Load a part's two tiles: pixels into registers 4 and 5, the weight into 6 and
// 7.
#define PARTITA_LOAD_PIXELS(part)                        \
  _tile_loadd(4, lhs + (part) * window.part_stride, 64); \
  _tile_loadd(5, lhs + (part) * window.part_stride + kTileBytes, 64)
#define PARTITA_LOAD_WEIGHT(part)                    \
  _tile_loadd(6, rhs + (part) * 2 * kTileBytes, 64); \
  _tile_loadd(7, rhs + ((part) * 2 + 1) * kTileBytes, 64)
// Multiplies the loaded parts. Meanwhile a sixth of the next step of both sides
// comes into the first-level cache, and rows of the last tile are finished.
#define PARTITA_MULTIPLY(part, half)                                     \
  _tile_dpbf16ps(0, 4, 6);                                               \
  _tile_dpbf16ps(1, 4, 7);                                               \
  _tile_dpbf16ps(2, 5, 6);                                               \
  _tile_dpbf16ps(3, 5, 7);                                               \
  FetchTile(next + (part) * window.part_stride + (half) * kTileBytes);   \
  FetchTile(rhs + kSplitStepBytes + ((part) * 2 + (half)) * kTileBytes); \
  rows.Run()

PARTITA_AMX void MultiplySplitWindow(const SplitWindow& window,
                                     const SplitWindowTile& finished,
                                     const SplitFetch& fetch, float* sums) {
  const int64_t turns = 6 * window.steps;
  RowsInTurn rows = {finished, (kSplitLines + turns - 1) / turns, fetch.data,
                     fetch.data + fetch.bytes,
                     (fetch.bytes / kFetchedBytes / turns + 1) * kFetchedBytes};
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  const char* rhs = window.weight;
  for (int64_t step = 0; step < window.steps; ++step) {
    const char* const lhs = window.pixels + window.offsets[step];
    const char* const next = window.pixels + window.offsets[step + 1];
    PARTITA_LOAD_PIXELS(0);
    PARTITA_LOAD_WEIGHT(2);
    PARTITA_MULTIPLY(0, 0);
    PARTITA_LOAD_WEIGHT(1);
    PARTITA_MULTIPLY(0, 1);
    PARTITA_LOAD_PIXELS(1);
    PARTITA_MULTIPLY(1, 0);
    PARTITA_LOAD_WEIGHT(0);
    PARTITA_MULTIPLY(1, 1);
    PARTITA_LOAD_PIXELS(2);
    PARTITA_MULTIPLY(2, 0);
    PARTITA_LOAD_PIXELS(0);
    PARTITA_MULTIPLY(2, 1);
    rhs += kSplitStepBytes;
  }
  constexpr int64_t kStride = kSplitLines * 4;
  _tile_stored(0, sums, kStride);
  _tile_stored(1, sums + kLanes, kStride);
  _tile_stored(2, sums + kLanes * kSplitLines, kStride);
  _tile_stored(3, sums + kLanes * kSplitLines + kLanes, kStride);
}

PARTITA_AMX void FinishSplitWindow(const SplitWindowTile& tile) {
  for (int64_t row = 0; row < tile.rows; ++row) FinishRow(tile, row);
}

PARTITA_AMX void MultiplySplitPixel(const float* pixel, int64_t channels,
                                    const char* weight, float* sums) {
  for (int64_t half = 0; half < 2; ++half) {
    __m512 sum = _mm512_loadu_ps(sums + half * kLanes);
    for (int64_t k = 0; k < channels; ++k)
      sum = _mm512_fmadd_ps(_mm512_set1_ps(pixel[k]),
                            WeightOf(weight + half * kTileBytes + k / 2 * 64,
                                     static_cast<int>(k % 2)),
                            sum);
    _mm512_storeu_ps(sums + half * kLanes, sum);
  }
}

}  // namespace partita::cpu
