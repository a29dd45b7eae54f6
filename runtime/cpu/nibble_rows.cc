// Vectors of 16 bytes, which hold 32 weights, compiled for three instruction
// sets. The best one that the processor has is chosen at the first call.
#include "runtime/cpu/nibble_rows.h"

#include <algorithm>
#include <cstring>

#include "runtime/cpu/best_clone.h"

namespace partita::cpu {
namespace {

constexpr int64_t kLanes = 16;
using Floats = float __attribute__((vector_size(4 * kLanes)));
using Shorts = int16_t __attribute__((vector_size(2 * kLanes)));
using Bits = unsigned char __attribute__((vector_size(kLanes)));
using Words = uint32_t __attribute__((vector_size(4 * kLanes)));

// The bits of 2^23. A float of these bits with an integer below 2^23 in the
// lowest ones is the sum of both.
constexpr uint32_t kLargeBits = 0x4B000000;
constexpr float kLarge = 8388608;

// Vectors cross no calls: everything that handles them is inlined into a
// function for one processor.
#define PARTITA_INLINE static inline __attribute__((always_inline))
#define PARTITA_UNROLL _Pragma("GCC unroll 8")

PARTITA_INLINE void LoadFloats(const float* from, Floats& to) {
  std::memcpy(&to, from, sizeof(to));
}

// The weights of 16 bytes, less `zero`: those in the low bits, then the others.
// 8 bits would not hold the difference from every zero point.
PARTITA_INLINE void LoadNibbles(const uint8_t* from, int16_t zero, Shorts& low,
                                Shorts& high) {
  Bits bits;
  std::memcpy(&bits, from, sizeof(bits));
  low = __builtin_convertvector(bits & 15, Shorts) - zero;
  high = __builtin_convertvector(bits >> 4, Shorts) - zero;
}

PARTITA_INLINE signed char ZeroOf(const NibbleWeights& weights, int64_t group) {
  return weights.zeros == nullptr ? static_cast<signed char>(8)
                                  : weights.zeros[group];
}

PARTITA_INLINE float Sum(const Floats& lanes) {
  float sum = 0;
  for (int64_t i = 0; i < kLanes; ++i) sum += lanes[i];
  return sum;
}

// The numbers of 16 bytes, less the zero point `low_zero` - 2^23, and 16 times
// those in the high bits. Fewer instructions than a conversion of integers.
PARTITA_INLINE void LoadNumbers(const uint8_t* from, float low_zero,
                                float high_zero, Floats& low, Floats& high) {
  Bits bits;
  std::memcpy(&bits, from, sizeof(bits));
  const Words words = __builtin_convertvector(bits, Words);
  low = reinterpret_cast<Floats>((words & 15) | kLargeBits) - low_zero;
  high = reinterpret_cast<Floats>((words & 240) | kLargeBits) - high_zero;
}

// Without zero points, their number is known while this is compiled: groups
// then cost little.
template <int kRows, int kColumns, bool kHasZeros>
PARTITA_INLINE void MultiplyTile(const NibbleRows& p, int64_t row,
                                 int64_t column) {
  const NibbleWeights& weights = p.weights;
  const float* const lhs = p.lhs + row * p.depth;
  // Of each column: the first byte and the first group.
  const uint8_t* bytes[kColumns];
  int64_t groups[kColumns];
  PARTITA_UNROLL
  for (int c = 0; c < kColumns; ++c) {
    const int64_t place = p.first + (column + c) * p.column_step;
    bytes[c] = weights.bytes + place / 2;
    groups[c] = place / weights.group;
  }
  Floats totals[kColumns][kRows] = {};
  for (int64_t k = 0; k < p.depth; k += weights.group) {
    Floats sums[kColumns][kRows] = {};
    float low_zeros[kColumns], high_zeros[kColumns], scales[kColumns];
    PARTITA_UNROLL
    for (int c = 0; c < kColumns; ++c) {
      const float zero = kHasZeros ? weights.zeros[groups[c]] : 8;
      low_zeros[c] = kLarge + zero;
      high_zeros[c] = kLarge + 16 * zero;
      scales[c] = weights.scales[groups[c]++];
    }
    for (int64_t i = 0; i < weights.group; i += kNibbleBlock) {
      Floats even[kRows], odd[kRows];
      PARTITA_UNROLL
      for (int r = 0; r < kRows; ++r) {
        LoadFloats(lhs + r * p.depth + k + i, even[r]);
        LoadFloats(lhs + r * p.depth + k + i + kLanes, odd[r]);
      }
      PARTITA_UNROLL
      for (int c = 0; c < kColumns; ++c) {
        Floats low, high;
        LoadNumbers(bytes[c] + (k + i) / 2, low_zeros[c], high_zeros[c], low,
                    high);
        PARTITA_UNROLL
        for (int r = 0; r < kRows; ++r) {
          sums[c][r] += even[r] * low;
          sums[c][r] += odd[r] * high;
        }
      }
    }
    PARTITA_UNROLL
    for (int c = 0; c < kColumns; ++c) {
      PARTITA_UNROLL
      for (int r = 0; r < kRows; ++r) totals[c][r] += sums[c][r] * scales[c];
    }
  }
  for (int c = 0; c < kColumns; ++c)
    for (int r = 0; r < kRows; ++r)
      p.out[(row + r) * p.out_row + (column + c) * p.out_column] =
          Sum(totals[c][r]) + (p.bias == nullptr ? 0.0f : p.bias[column + c]);
}

template <int kRows, int kColumns, bool kHasZeros>
PARTITA_INLINE void MultiplyRows(const NibbleRows& p, int64_t row) {
  int64_t column = 0;
  for (; column + kColumns <= p.columns; column += kColumns)
    MultiplyTile<kRows, kColumns, kHasZeros>(p, row, column);
  for (; column < p.columns; ++column)
    MultiplyTile<kRows, 1, kHasZeros>(p, row, column);
}

template <bool kHasZeros>
PARTITA_INLINE void MultiplyAll(const NibbleRows& p) {
  int64_t row = 0;
  for (; row + 4 <= p.rows; row += 4) MultiplyRows<4, 3, kHasZeros>(p, row);
  for (; row < p.rows; ++row) MultiplyRows<1, 6, kHasZeros>(p, row);
}

PARTITA_INLINE void Multiply(const NibbleRows& p) {
  if (p.weights.zeros == nullptr)
    MultiplyAll<false>(p);
  else
    MultiplyAll<true>(p);
}

PARTITA_INLINE float One(const NibbleWeights& weights, int64_t place) {
  const int byte = weights.bytes[place / 2];
  const int64_t group = place / weights.group;
  const int bits = place % 2 == 0 ? byte & 15 : byte >> 4;
  return weights.scales[group] *
         static_cast<float>(bits - ZeroOf(weights, group));
}

// Places [first, first + count) of one group.
PARTITA_INLINE void DequantizeGroup(const NibbleWeights& weights, int64_t first,
                                    int64_t count, float* target) {
  const int64_t group = first / weights.group;
  const float scale = weights.scales[group];
  const signed char zero = ZeroOf(weights, group);
  int64_t i = 0;
  if (first % 2 == 1) {
    target[0] = One(weights, first);
    i = 1;
  }
  for (; i + kNibbleBlock <= count; i += kNibbleBlock) {
    Shorts low, high;
    LoadNibbles(weights.bytes + (first + i) / 2, zero, low, high);
    const Shorts front =
                     __builtin_shufflevector(low, high, 0, 16, 1, 17, 2, 18, 3,
                                             19, 4, 20, 5, 21, 6, 22, 7, 23),
                 back = __builtin_shufflevector(low, high, 8, 24, 9, 25, 10, 26,
                                                11, 27, 12, 28, 13, 29, 14, 30,
                                                15, 31);
    const Floats numbers[2] = {__builtin_convertvector(front, Floats) * scale,
                               __builtin_convertvector(back, Floats) * scale};
    std::memcpy(target + i, numbers, sizeof(numbers));
  }
  for (; i < count; ++i) target[i] = One(weights, first + i);
}

PARTITA_INLINE void DequantizeAll(const NibbleWeights& weights, int64_t first,
                                  int64_t count, float* target) {
  const int64_t end = first + count;
  for (int64_t place = first; place < end;) {
    const int64_t next =
        std::min(end, (place / weights.group + 1) * weights.group);
    DequantizeGroup(weights, place, next - place, target + place - first);
    place = next;
  }
}

struct Functions {
  void (*multiply)(const NibbleRows&);
  void (*dequantize)(const NibbleWeights&, int64_t, int64_t, float*);
};

#define PARTITA_CLONE(name, ...)                                        \
  __VA_ARGS__ void Multiply##name(const NibbleRows& p) { Multiply(p); } \
  __VA_ARGS__ void Dequantize##name(const NibbleWeights& weights,       \
                                    int64_t first, int64_t count,       \
                                    float* target) {                    \
    DequantizeAll(weights, first, count, target);                       \
  }                                                                     \
  constexpr Functions k##name = {&Multiply##name, &Dequantize##name}

PARTITA_CLONE(Avx512, __attribute__((target("avx512f,avx512bw,avx512vl"))));
PARTITA_CLONE(Avx2, __attribute__((target("avx2,fma"))));
PARTITA_CLONE(Plain);

#undef PARTITA_CLONE
#undef PARTITA_UNROLL
#undef PARTITA_INLINE

const Functions& Best() {
  static const Functions& best = BestClone(kAvx512, kAvx2, kPlain);
  return best;
}

}  // namespace

bool CanMultiplyNibbleRows(const NibbleRows& product) {
  const int64_t group = product.weights.group;
  return group % kNibbleBlock == 0 && product.depth % group == 0 &&
         product.first % group == 0 && product.column_step % group == 0;
}

void ArrangeRow(const float* row, int64_t step, int64_t depth,
                float* arranged) {
  for (int64_t k = 0; k < depth; k += kNibbleBlock)
    for (int64_t i = 0; i < kLanes; ++i) {
      arranged[k + i] = row[(k + 2 * i) * step];
      arranged[k + kLanes + i] = row[(k + 2 * i + 1) * step] / 16;
    }
}

void MultiplyNibbleRows(const NibbleRows& product) { Best().multiply(product); }

void Dequantize(const NibbleWeights& weights, int64_t first, int64_t count,
                float* target) {
  Best().dequantize(weights, first, count, target);
}

}  // namespace partita::cpu
