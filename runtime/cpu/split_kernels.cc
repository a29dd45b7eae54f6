// Tiles 0 to 3 hold sums, 4 and 5 a part of lhs, 6 and 7 a part of rhs. A step
// of a panel is three parts, largest first, of two tiles each. A tile of lhs is
// 16 rows of 32 values; a tile of rhs is 16 rows of two neighbours in depth of
// 16 columns.
#include "runtime/cpu/split_kernels.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "runtime/cpu/split_parts.h"

namespace partita::cpu {
namespace {

// Operands of ldtilecfg.
struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

bool RequestTiles() {
#ifdef SYS_arch_prctl
  constexpr int kRequestPermission = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

// 16 vectors become their transposition.
PARTITA_AMX_INLINE void Transpose(__m512 rows[kLanes]) {
  __m512 quads[kLanes];
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    const __m512 a = _mm512_unpacklo_ps(rows[i], rows[i + 1]),
                 b = _mm512_unpackhi_ps(rows[i], rows[i + 1]),
                 c = _mm512_unpacklo_ps(rows[i + 2], rows[i + 3]),
                 d = _mm512_unpackhi_ps(rows[i + 2], rows[i + 3]);
    quads[i] = _mm512_shuffle_ps(a, c, 0x44);
    quads[i + 1] = _mm512_shuffle_ps(a, c, 0xee);
    quads[i + 2] = _mm512_shuffle_ps(b, d, 0x44);
    quads[i + 3] = _mm512_shuffle_ps(b, d, 0xee);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const __m512 a = _mm512_shuffle_f32x4(quads[i], quads[4 + i], 0x88),
                 b = _mm512_shuffle_f32x4(quads[i], quads[4 + i], 0xdd),
                 c = _mm512_shuffle_f32x4(quads[8 + i], quads[12 + i], 0x88),
                 d = _mm512_shuffle_f32x4(quads[8 + i], quads[12 + i], 0xdd);
    rows[i] = _mm512_shuffle_f32x4(a, c, 0x88);
    rows[8 + i] = _mm512_shuffle_f32x4(a, c, 0xdd);
    rows[4 + i] = _mm512_shuffle_f32x4(b, d, 0x88);
    rows[12 + i] = _mm512_shuffle_f32x4(b, d, 0xdd);
  }
}

// Reads a square of 16 lines and 16 values of depth: vectors[i] has line i
// (`by_line`), or depth i of all lines.
template <bool contiguous_depth, bool by_line>
PARTITA_AMX_INLINE void LoadSquare(const SplitLines& from, int64_t lines,
                                   int64_t depth, __m512 vectors[kLanes]) {
  const int64_t count = contiguous_depth ? lines : depth;
  const int64_t stride =
      contiguous_depth ? from.line_stride : from.depth_stride;
  const __mmask16 mask = LaneMask(contiguous_depth ? depth : lines);
#pragma GCC unroll 16
  for (int64_t i = 0; i < kLanes; ++i)
    vectors[i] = _mm512_maskz_loadu_ps(
        i < count ? mask : 0, from.data + (i < count ? i * stride : 0));
  if (contiguous_depth != by_line) Transpose(vectors);
}

template <bool contiguous_depth>
PARTITA_AMX void PackLhs(const SplitLines& from, int64_t lines, int64_t depth,
                         char* panel) {
  for (int64_t k = 0; k < depth; k += kSplitDepth, panel += kSplitStepBytes) {
    for (int64_t half = 0; half < 2; ++half) {
      const SplitLines square = {
          from.data + half * kLanes * from.line_stride + k * from.depth_stride,
          from.line_stride, from.depth_stride};
      const SplitLines next = {square.data + kLanes * from.depth_stride,
                               from.line_stride, from.depth_stride};
      __m512 low[kLanes], high[kLanes];
      LoadSquare<contiguous_depth, true>(square, lines - half * kLanes,
                                         depth - k, low);
      LoadSquare<contiguous_depth, true>(next, lines - half * kLanes,
                                         depth - k - kLanes, high);
      char* const target = panel + half * kTileBytes;
#pragma GCC unroll 16
      for (int64_t line = 0; line < kLanes; ++line)
        StoreParts(low[line], high[line], target + line * 64, 2 * kTileBytes);
    }
  }
}

template <bool contiguous_depth>
PARTITA_AMX void PackRhs(const SplitLines& from, int64_t lines, int64_t depth,
                         char* panel) {
  constexpr __mmask32 kUpperHalves = 0xaaaaaaaa;
  for (int64_t k = 0; k < depth; k += kSplitDepth, panel += kSplitStepBytes) {
    for (int64_t square = 0; square < 4; ++square) {
      const int64_t column = square / 2 * kLanes, row = k + square % 2 * kLanes;
      __m512 values[kLanes];
      LoadSquare<contiguous_depth, false>(
          {from.data + column * from.line_stride + row * from.depth_stride,
           from.line_stride, from.depth_stride},
          lines - column, depth - row, values);
      char* const target = panel + square / 2 * kTileBytes + square % 2 * 512;
#pragma GCC unroll 8
      for (int64_t pair = 0; pair < kLanes / 2; ++pair) {
        __m512i first[3], second[3];
        Split(values[2 * pair], first);
        Split(values[2 * pair + 1], second);
        for (int part = 0; part < 3; ++part)
          _mm512_store_si512(
              target + part * 2 * kTileBytes + pair * 64,
              _mm512_mask_blend_epi16(kUpperHalves,
                                      _mm512_srli_epi32(first[part], 16),
                                      second[part]));
      }
    }
  }
}

// Computes a row of a tile with f32 instructions. Columns of rhs are neighbours
// in memory. Four sums hide the latency of additions.
PARTITA_AMX [[gnu::noinline]] void MultiplyRowByColumns(const SplitTile& tile,
                                                        int64_t row,
                                                        float* sums) {
  constexpr int64_t kSums = 4;
  const float* const lhs = tile.lhs.data + row * tile.lhs.line_stride;
  const __mmask16 masks[2] = {LaneMask(tile.columns),
                              LaneMask(tile.columns - kLanes)};
  __m512 parts[kSums][2] = {};
  for (int64_t k = 0; k < tile.depth; k += kSums) {
#pragma GCC unroll 4
    for (int64_t i = 0; i < kSums; ++i) {
      if (k + i >= tile.depth) break;
      const float* const rhs = tile.rhs.data + (k + i) * tile.rhs.depth_stride;
      const __m512 factor =
          _mm512_set1_ps(lhs[(k + i) * tile.lhs.depth_stride]);
      for (int half = 0; half < 2; ++half)
        parts[i][half] = _mm512_fmadd_ps(
            factor, _mm512_maskz_loadu_ps(masks[half], rhs + half * kLanes),
            parts[i][half]);
    }
  }
  for (int half = 0; half < 2; ++half)
    _mm512_store_ps(
        sums + half * kLanes,
        (parts[0][half] + parts[1][half]) + (parts[2][half] + parts[3][half]));
}

// The same, if columns of rhs are contiguous in depth.
PARTITA_AMX [[gnu::noinline]] void MultiplyRowByDepth(const SplitTile& tile,
                                                      int64_t row,
                                                      float* sums) {
  const float* const lhs = tile.lhs.data + row * tile.lhs.line_stride;
  __m512 parts[kSplitLines] = {};
  for (int64_t k = 0; k < tile.depth; k += kLanes) {
    const __mmask16 mask = LaneMask(tile.depth - k);
    alignas(64) float factors[kLanes] = {};
    for (int64_t i = 0; i < std::min(kLanes, tile.depth - k); ++i)
      factors[i] = lhs[(k + i) * tile.lhs.depth_stride];
    const __m512 factor = _mm512_load_ps(factors);
    for (int64_t column = 0; column < tile.columns; ++column)
      parts[column] = _mm512_fmadd_ps(
          factor,
          _mm512_maskz_loadu_ps(
              mask, tile.rhs.data + column * tile.rhs.line_stride + k),
          parts[column]);
  }
  for (int64_t column = 0; column < tile.columns; ++column)
    sums[column] = _mm512_reduce_add_ps(parts[column]);
}

// Adds the initial values, at `place`, and the bias of 16 columns from `first`.
PARTITA_AMX_INLINE __m512 AddOperands(const SplitTile& tile, int64_t place,
                                      int64_t first, __mmask16 mask,
                                      __m512 value) {
  if (tile.initial != nullptr)
    value =
        _mm512_add_ps(value, _mm512_maskz_loadu_ps(mask, tile.initial + place));
  if (tile.bias != nullptr)
    value =
        _mm512_add_ps(value, _mm512_maskz_loadu_ps(mask, tile.bias + first));
  return value;
}

PARTITA_AMX_INLINE void WriteRow(const SplitTile& tile, int64_t row) {
  __m512 low = _mm512_load_ps(tile.sums + row * kSplitLines),
         high = _mm512_load_ps(tile.sums + row * kSplitLines + kLanes);
  if (HasNanOrInfinity(low) || HasNanOrInfinity(high)) {
    alignas(64) float sums[kSplitLines] = {};
    if (tile.rhs.line_stride == 1)
      MultiplyRowByColumns(tile, row, sums);
    else
      MultiplyRowByDepth(tile, row, sums);
    low = _mm512_load_ps(sums);
    high = _mm512_load_ps(sums + kLanes);
  }
  const int64_t place = row * tile.out_stride;
  const __mmask16 low_mask = LaneMask(tile.columns),
                  high_mask = LaneMask(tile.columns - kLanes);
  low = AddOperands(tile, place, 0, low_mask, low);
  high = AddOperands(tile, place + kLanes, kLanes, high_mask, high);
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

constexpr int64_t kFetchedBytes = 64;  // a line of the cache

// Writes the next `count` rows of `finished`, fetches those of `next`, and the
// next `fetch_bytes` bytes up to `fetch_end`.
struct RowsInTurn {
  const SplitTile& finished;
  const SplitTile& next;
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
    const int64_t end = row + count;
    for (int64_t i = row; i < std::min(end, next.rows); ++i) {
      const float* const place = next.out + i * next.out_stride;
      _mm_prefetch(place, _MM_HINT_T0);
      _mm_prefetch(place + std::min(next.columns, kSplitLines) - 1,
                   _MM_HINT_T0);
    }
    for (; row < std::min(end, finished.rows); ++row) WriteRow(finished, row);
    row = end;
  }
};

}  // namespace

bool HasSplitKernels() {
  static const bool has = __builtin_cpu_supports("avx512f") &&
                          __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512vl") &&
                          __builtin_cpu_supports("avx512dq") &&
                          __builtin_cpu_supports("amx-tile") &&
                          __builtin_cpu_supports("amx-bf16") && RequestTiles();
  return has;
}

PARTITA_AMX void ConfigureTiles() {
  const TileConfig config;
  _tile_loadconfig(&config);
}

PARTITA_AMX void ReleaseTiles() { _tile_release(); }

void PackSplitLhs(const SplitLines& rows, int64_t lines, int64_t depth,
                  char* panel) {
  if (rows.depth_stride == 1)
    PackLhs<true>(rows, lines, depth, panel);
  else
    PackLhs<false>(rows, lines, depth, panel);
}

void PackSplitRhs(const SplitLines& columns, int64_t lines, int64_t depth,
                  char* panel) {
  if (columns.line_stride == 1)
    PackRhs<false>(columns, lines, depth, panel);
  else
    PackRhs<true>(columns, lines, depth, panel);
}

// Loads a part's two tiles into registers `first` and `first` + 1.
#define PARTITA_LOAD(panel, first, part)                   \
  _tile_loadd(first, panel + (part) * 2 * kTileBytes, 64); \
  _tile_loadd(first + 1, panel + ((part) * 2 + 1) * kTileBytes, 64)
// Multiplies the loaded parts. Meanwhile a sixth of the next step of lhs comes
// into the first-level cache, and rows of the last tile are written.
#define PARTITA_MULTIPLY(sixth)                            \
  _tile_dpbf16ps(0, 4, 6);                                 \
  _tile_dpbf16ps(1, 4, 7);                                 \
  _tile_dpbf16ps(2, 5, 6);                                 \
  _tile_dpbf16ps(3, 5, 7);                                 \
  FetchTile(lhs + kSplitStepBytes + (sixth) * kTileBytes); \
  rows.Run()

PARTITA_AMX void MultiplySplit(const char* lhs, const char* rhs, int64_t steps,
                               const SplitTile& finished, const SplitTile& next,
                               const SplitFetch& fetch, float* sums) {
  const int64_t turns = 6 * steps;
  RowsInTurn rows = {finished,
                     next,
                     (kSplitLines + turns - 1) / turns,
                     fetch.data,
                     fetch.data + fetch.bytes,
                     (fetch.bytes / kFetchedBytes / turns + 1) * kFetchedBytes};
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (int64_t step = 0; step < steps; ++step) {
    PARTITA_LOAD(lhs, 4, 0);
    PARTITA_LOAD(rhs, 6, 2);
    PARTITA_MULTIPLY(0);
    PARTITA_LOAD(rhs, 6, 1);
    PARTITA_MULTIPLY(1);
    PARTITA_LOAD(lhs, 4, 1);
    PARTITA_MULTIPLY(2);
    PARTITA_LOAD(rhs, 6, 0);
    PARTITA_MULTIPLY(3);
    PARTITA_LOAD(lhs, 4, 2);
    PARTITA_MULTIPLY(4);
    PARTITA_LOAD(lhs, 4, 0);
    PARTITA_MULTIPLY(5);
    lhs += kSplitStepBytes;
    rhs += kSplitStepBytes;
  }
  constexpr int64_t kStride = kSplitLines * 4;
  _tile_stored(0, sums, kStride);
  _tile_stored(1, sums + kLanes, kStride);
  _tile_stored(2, sums + kLanes * kSplitLines, kStride);
  _tile_stored(3, sums + kLanes * kSplitLines + kLanes, kStride);
}

PARTITA_AMX void WriteSplitTile(const SplitTile& tile) {
  for (int64_t row = 0; row < tile.rows; ++row) WriteRow(tile, row);
}

}  // namespace partita::cpu
