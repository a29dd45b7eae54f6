// Vectors of 16 numbers, compiled for three instruction sets. The best one that
// the processor has is chosen at the first call.
#include "runtime/cpu/widen_rows.h"

#include <algorithm>
#include <cstring>

#include "runtime/cpu/best_clone.h"

namespace partita::cpu {
namespace {

constexpr int64_t kLanes = 16;
// Rows of the matrix that are read at once.
constexpr int64_t kDepthAtOnce = 8;
using Floats = float __attribute__((vector_size(4 * kLanes)));
using Bytes = signed char __attribute__((vector_size(kLanes)));

#define PARTITA_INLINE static inline __attribute__((always_inline))

PARTITA_INLINE void LoadFloats(const float* from, Floats& to) {
  std::memcpy(&to, from, sizeof(to));
}

// Up to 16 weights; the others are 0.
PARTITA_INLINE void LoadWeights(const int8_t* from, int64_t count, Floats& to) {
  Bytes bytes = {};
  if (count >= kLanes)
    std::memcpy(&bytes, from, sizeof(bytes));
  else
    std::memcpy(&bytes, from, static_cast<size_t>(count));
  to = __builtin_convertvector(bytes, Floats);
}

PARTITA_INLINE float Sum(const Floats& lanes) {
  float sum = 0;
  for (int64_t i = 0; i < kLanes; ++i) sum += lanes[i];
  return sum;
}

PARTITA_INLINE void Store(const FewRows& p, int64_t row, int64_t column,
                          float sum) {
  p.out[row * p.out_row + column * p.out_column] =
      sum * p.scale[column] + (p.bias == nullptr ? 0.0f : p.bias[column]);
}

// Adds lhs[k..k+kDepth) times 16 columns of the matrix to the sums.
template <int64_t kRows, int64_t kDepth>
PARTITA_INLINE void AddColumns(const FewRows& p, const float* lhs, int64_t k,
                               int64_t column, int64_t count, float* sums) {
  Floats totals[kRows];
  for (int64_t row = 0; row < kRows; ++row)
    LoadFloats(sums + row * kMostColumns + column, totals[row]);
  for (int64_t i = 0; i < kDepth; ++i) {
    Floats weights;
    LoadWeights(p.weights + (k + i) * p.weight_depth + column, count, weights);
    for (int64_t row = 0; row < kRows; ++row)
      totals[row] += weights * lhs[row * p.lhs_row + (k + i) * p.lhs_depth];
  }
  for (int64_t row = 0; row < kRows; ++row)
    std::memcpy(sums + row * kMostColumns + column, &totals[row],
                sizeof(Floats));
}

template <int64_t kRows, int64_t kDepth>
PARTITA_INLINE void AddAllColumns(const FewRows& p, const float* lhs, int64_t k,
                                  float* sums) {
  int64_t column = 0;
  for (; column + kLanes <= p.columns; column += kLanes)
    AddColumns<kRows, kDepth>(p, lhs, k, column, kLanes, sums);
  if (column < p.columns)
    AddColumns<kRows, kDepth>(p, lhs, k, column, p.columns - column, sums);
}

// Weights of one k and consecutive columns are contiguous: they are read along
// the columns, as memory likes it.
template <int64_t kRows>
PARTITA_INLINE void AlongColumns(const FewRows& p, int64_t first_row) {
  alignas(64) float sums[kRows * kMostColumns];
  std::memset(sums, 0, sizeof(sums));
  const float* lhs = p.lhs + first_row * p.lhs_row;
  int64_t k = 0;
  for (; k + kDepthAtOnce <= p.depth; k += kDepthAtOnce)
    AddAllColumns<kRows, kDepthAtOnce>(p, lhs, k, sums);
  for (; k < p.depth; ++k) AddAllColumns<kRows, 1>(p, lhs, k, sums);
  for (int64_t row = 0; row < kRows; ++row)
    for (int64_t column = 0; column < p.columns; ++column)
      Store(p, first_row + row, column, sums[row * kMostColumns + column]);
}

// Weights of one column and consecutive k are contiguous, and so are rows of
// lhs.
template <int64_t kRows, int64_t kColumns>
PARTITA_INLINE void AlongDepth(const FewRows& p, int64_t first_row,
                               int64_t first_column) {
  Floats sums[kRows][kColumns] = {};
  const float* lhs = p.lhs + first_row * p.lhs_row;
  const int8_t* weights = p.weights + first_column * p.weight_column;
  const auto add = [&](int64_t k,
                       int64_t count) __attribute__((always_inline)) {
    Floats factors[kRows];
    for (int64_t row = 0; row < kRows; ++row) {
      factors[row] = Floats{};
      if (count == kLanes)
        LoadFloats(lhs + row * p.lhs_row + k, factors[row]);
      else
        std::memcpy(&factors[row], lhs + row * p.lhs_row + k,
                    static_cast<size_t>(count) * sizeof(float));
    }
    for (int64_t column = 0; column < kColumns; ++column) {
      Floats wide;
      LoadWeights(weights + column * p.weight_column + k, count, wide);
      for (int64_t row = 0; row < kRows; ++row)
        sums[row][column] += factors[row] * wide;
    }
  };
  int64_t k = 0;
  for (; k + kLanes <= p.depth; k += kLanes) add(k, kLanes);
  if (k < p.depth) add(k, p.depth - k);
  for (int64_t row = 0; row < kRows; ++row)
    for (int64_t column = 0; column < kColumns; ++column)
      Store(p, first_row + row, first_column + column, Sum(sums[row][column]));
}

template <int64_t kRows>
PARTITA_INLINE void Rows(const FewRows& p, int64_t first_row) {
  if (p.weight_column == 1) return AlongColumns<kRows>(p, first_row);
  // Enough sums at once to hide the latency of a multiplication.
  constexpr int64_t kColumns = kRows == 1 ? 8 : 4;
  int64_t column = 0;
  for (; column + kColumns <= p.columns; column += kColumns)
    AlongDepth<kRows, kColumns>(p, first_row, column);
  for (; column < p.columns; ++column)
    AlongDepth<kRows, 1>(p, first_row, column);
}

PARTITA_INLINE void Multiply(const FewRows& p) {
  int64_t row = 0;
  if (p.weight_column == 1)
    for (; row + 8 <= p.rows; row += 8) AlongColumns<8>(p, row);
  for (; row + 4 <= p.rows; row += 4) Rows<4>(p, row);
  for (; row < p.rows; ++row) Rows<1>(p, row);
}

PARTITA_INLINE void WidenAll(const int8_t* source, int64_t count,
                             float* target) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    Floats wide;
    LoadWeights(source + i, kLanes, wide);
    std::memcpy(target + i, &wide, sizeof(wide));
  }
  for (; i < count; ++i) target[i] = source[i];
}

struct Functions {
  void (*multiply)(const FewRows&);
  void (*widen)(const int8_t*, int64_t, float*);
};

#define PARTITA_CLONE(name, ...)                                     \
  __VA_ARGS__ void Multiply##name(const FewRows& p) { Multiply(p); } \
  __VA_ARGS__ void Widen##name(const int8_t* source, int64_t count,  \
                               float* target) {                      \
    WidenAll(source, count, target);                                 \
  }                                                                  \
  constexpr Functions k##name = {&Multiply##name, &Widen##name}

PARTITA_CLONE(Avx512, __attribute__((target("avx512f,avx512bw,avx512vl"))));
PARTITA_CLONE(Avx2, __attribute__((target("avx2,fma"))));
PARTITA_CLONE(Plain);

#undef PARTITA_CLONE
#undef PARTITA_INLINE

const Functions& Best() {
  static const Functions& best = BestClone(kAvx512, kAvx2, kPlain);
  return best;
}

}  // namespace

bool CanMultiplyFewRows(const FewRows& product) {
  return product.weight_column == 1 ||
         (product.weight_depth == 1 && product.lhs_depth == 1);
}

void MultiplyFewRows(const FewRows& product) { Best().multiply(product); }

void Widen(const int8_t* source, int64_t count, float* target) {
  Best().widen(source, count, target);
}

}  // namespace partita::cpu
