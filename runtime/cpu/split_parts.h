// Instructions that the kernels on AMX share. See split_kernels.h.
#ifndef PARTITA_RUNTIME_CPU_SPLIT_PARTS_H_
#define PARTITA_RUNTIME_CPU_SPLIT_PARTS_H_

#include <immintrin.h>

#include <algorithm>
#include <cstdint>

// clang-format off
#define PARTITA_AMX \
  [[gnu::target("avx512f,avx512bw,avx512vl,avx512dq,amx-tile,amx-bf16")]]
// clang-format on
#define PARTITA_AMX_INLINE PARTITA_AMX [[gnu::always_inline]] inline

namespace partita::cpu {

inline constexpr int64_t kLanes = 16, kTileBytes = 1024;

inline __mmask16 LaneMask(int64_t count) {
  return static_cast<__mmask16>((1u << std::clamp<int64_t>(count, 0, kLanes)) -
                                1);
}

// Rounds to the bf16 nearest to each lane, as bits of f32.
PARTITA_AMX_INLINE __m512i RoundToPart(__m512 value) {
  return _mm512_and_si512(
      _mm512_add_epi32(_mm512_castps_si512(value), _mm512_set1_epi32(0x8000)),
      _mm512_set1_epi32(static_cast<int>(0xffff0000)));
}

// value = parts[0] + parts[1] + parts[2], each a bf16. Below 2^-110 the lower
// half of parts[2] has bits, too, which belong to none.
PARTITA_AMX_INLINE void Split(__m512 value, __m512i parts[3]) {
  parts[0] = RoundToPart(value);
  value = _mm512_sub_ps(value, _mm512_castsi512_ps(parts[0]));
  parts[1] = RoundToPart(value);
  value = _mm512_sub_ps(value, _mm512_castsi512_ps(parts[1]));
  parts[2] = _mm512_castps_si512(value);
}

// Writes the parts of 32 values, `stride` bytes apart and aligned to 64.
PARTITA_AMX_INLINE void StoreParts(__m512 low, __m512 high, char* target,
                                   int64_t stride) {
  alignas(64) static constexpr uint16_t kUpperHalves[32] = {
      1,  3,  5,  7,  9,  11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31,
      33, 35, 37, 39, 41, 43, 45, 47, 49, 51, 53, 55, 57, 59, 61, 63};
  const __m512i upper_halves = _mm512_load_si512(kUpperHalves);
  __m512i first[3], second[3];
  Split(low, first);
  Split(high, second);
  for (int part = 0; part < 3; ++part)
    _mm512_store_si512(
        target + part * stride,
        _mm512_permutex2var_epi16(first[part], upper_halves, second[part]));
}

// Fetches a tile into the first-level cache.
PARTITA_AMX_INLINE void FetchTile(const char* tile) {
#pragma GCC unroll 16
  for (int64_t line = 0; line < kTileBytes; line += 64)
    _mm_prefetch(tile + line, _MM_HINT_T0);
}

// True if a lane is infinite or NaN.
PARTITA_AMX_INLINE bool HasNanOrInfinity(__m512 value) {
  constexpr int kNanOrInfinity = 0x99;
  return _mm512_fpclass_ps_mask(value, kNanOrInfinity) != 0;
}

}  // namespace partita::cpu

#endif  // PARTITA_RUNTIME_CPU_SPLIT_PARTS_H_
