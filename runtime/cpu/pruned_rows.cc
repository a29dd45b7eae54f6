// A packed matrix has panels of 16 columns. A panel has, for each group of four
// k, two vectors of 16 weights; then come the places of all panels' weights, as
// vectors of 16 numbers of 2 bits. A kernel reads four elements of a row of
// lhs, and permutes them by the places.
#include "runtime/cpu/pruned_rows.h"

#include <immintrin.h>

#include <algorithm>

namespace partita::cpu {
namespace {

constexpr int64_t kGroup = 4, kKept = 2, kLanes = kSparseLanes;
constexpr int64_t kGroupWeights = kKept * kLanes;  // of a panel
// Places of the two weights that a group keeps, by the mask of its weights
// other than zero. A group with fewer keeps zeros. The places are ascending, so
// sums have the order of the whole matrix.
struct Places {
  int8_t low, high;
};
constexpr Places kPlaces[16] = {{0, 1}, {0, 1}, {0, 1}, {0, 1}, {0, 2}, {0, 2},
                                {1, 2}, {},     {0, 3}, {0, 3}, {1, 3}, {},
                                {2, 3}, {},     {},     {}};

int64_t Groups(int64_t depth) { return (depth + kGroup - 1) / kGroup; }
int64_t WeightCount(int64_t depth, int64_t columns) {
  return SparsePanels(columns) * Groups(depth) * kGroupWeights;
}

// The weights of a group in a column; those past the last k are 0.
void LoadGroup(const MatrixView& matrix, int64_t group, int64_t column,
               float* weights) {
  for (int64_t i = 0; i < kGroup; ++i) {
    const int64_t k = group * kGroup + i;
    weights[i] =
        k < matrix.depth
            ? matrix.data[k * matrix.row_stride + column * matrix.column_stride]
            : 0;
  }
}

int Mask(const float* weights) {
  return (weights[0] != 0 ? 1 : 0) | (weights[1] != 0 ? 2 : 0) |
         (weights[2] != 0 ? 4 : 0) | (weights[3] != 0 ? 8 : 0);
}

// The panel of a part's column, and the places of its weights.
struct Panel {
  const float* weights;
  const uint32_t* places;
};
Panel PanelOf(const SparsePart& part, int64_t column) {
  const float* const weights = static_cast<const float*>(part.packed);
  const int64_t first = column / kLanes * Groups(part.depth);
  return {weights + first * kGroupWeights,
          reinterpret_cast<const uint32_t*>(
              weights + WeightCount(part.depth, part.columns)) +
              first * kKept};
}

// The elements of the last group of rows, if it is not whole.
struct Tail {
  float lhs[8 * kGroup] = {};

  Tail(const SparsePart& part, int64_t rows) {
    const int64_t begin = part.depth / kGroup * kGroup;
    for (int64_t row = 0; row < rows; ++row)
      std::copy(part.lhs + row * part.lhs_stride + begin,
                part.lhs + row * part.lhs_stride + part.depth,
                lhs + row * kGroup);
  }
};

void AddLeftOutWeights(const SparsePart& part, int64_t rows) {
  AddLeftOut(part, rows, [&](int64_t k, int64_t column) {
    const uint32_t* const places =
        PanelOf(part, column).places + k / kGroup * kKept;
    const int64_t shift = 2 * (column % kLanes);
    const auto place = static_cast<uint32_t>(k % kGroup);
    return (places[0] >> shift & 3) == place ||
           (places[1] >> shift & 3) == place;
  });
}

// Sums stay in registers only if loops over them are unrolled.
#define PARTITA_UNROLL _Pragma("GCC unroll 16")
#define PARTITA_AVX512 gnu::target("avx512f,avx512bw,avx512vl,fma")
#define PARTITA_AVX2 gnu::target("avx2,fma")

// Adds a group of four k of M rows, in V panels.
template <int M, int V>
[[PARTITA_AVX512, gnu::always_inline]] inline void AddGroup(
    const Panel* panels, int64_t group, const float* lhs, int64_t stride,
    __m512 (&sums)[V][M]) {
  const __m512i shifts = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14,
                                          12, 10, 8, 6, 4, 2, 0);
  __m512 rows[M];
  PARTITA_UNROLL
  for (int row = 0; row < M; ++row)
    rows[row] = _mm512_broadcast_f32x4(_mm_loadu_ps(lhs + row * stride));
  PARTITA_UNROLL
  for (int v = 0; v < V; ++v) {
    PARTITA_UNROLL
    for (int i = 0; i < kKept; ++i) {
      const float* const from =
          panels[v].weights + group * kGroupWeights + i * kLanes;
      __builtin_prefetch(from + kSparseAhead, 0, 2);
      const __m512 weights = _mm512_loadu_ps(from);
      const __m512i places = _mm512_srlv_epi32(
          _mm512_set1_epi32(
              static_cast<int>(panels[v].places[group * kKept + i])),
          shifts);
      PARTITA_UNROLL
      for (int row = 0; row < M; ++row)
        sums[v][row] = _mm512_fmadd_ps(_mm512_permutevar_ps(rows[row], places),
                                       weights, sums[v][row]);
    }
  }
}

template <int M, int V>
[[PARTITA_AVX512, gnu::always_inline]] inline void SumPanels(
    const SparsePart& part, int64_t column, const Tail& tail) {
  Panel panels[V];
  __m512 sums[V][M] = {};
  for (int v = 0; v < V; ++v) panels[v] = PanelOf(part, column + v * kLanes);
  const int64_t whole = part.depth / kGroup;
  for (int64_t group = 0; group < whole; ++group)
    AddGroup<M, V>(panels, group, part.lhs + group * kGroup, part.lhs_stride,
                   sums);
  if (part.depth % kGroup != 0)
    AddGroup<M, V>(panels, whole, tail.lhs, kGroup, sums);
  PARTITA_UNROLL
  for (int v = 0; v < V; ++v) {
    PARTITA_UNROLL
    for (int row = 0; row < M; ++row)
      _mm512_storeu_ps(
          part.sums + row * part.sums_stride + column - part.begin + v * kLanes,
          sums[v][row]);
  }
}

template <int M>
[[PARTITA_AVX512]] void ComputeAvx512(const SparsePart& part) {
  const Tail tail(part, M);
  int64_t column = part.begin;
  for (; column + kLanes < part.end; column += 2 * kLanes)
    SumPanels<M, 2>(part, column, tail);
  if (column < part.end) SumPanels<M, 1>(part, column, tail);
}

// Adds a group of four k of M rows, in a panel: two vectors of 8 columns.
template <int M>
[[PARTITA_AVX2, gnu::always_inline]] inline void AddGroup(
    const Panel& panel, int64_t group, const float* lhs, int64_t stride,
    __m256 (&sums)[2][M]) {
  const __m256i shifts = _mm256_set_epi32(14, 12, 10, 8, 6, 4, 2, 0);
  PARTITA_UNROLL
  for (int i = 0; i < kKept; ++i) {
    const float* const from =
        panel.weights + group * kGroupWeights + i * kLanes;
    __builtin_prefetch(from + kSparseAhead, 0, 2);
    const uint32_t bits = panel.places[group * kKept + i];
    PARTITA_UNROLL
    for (int half = 0; half < 2; ++half) {
      const __m256 weights = _mm256_loadu_ps(from + half * 8);
      const __m256i places = _mm256_srlv_epi32(
          _mm256_set1_epi32(static_cast<int>(bits >> (half * 16))), shifts);
      PARTITA_UNROLL
      for (int row = 0; row < M; ++row) {
        const __m256 four = _mm256_broadcast_ps(
            reinterpret_cast<const __m128*>(lhs + row * stride));
        sums[half][row] = _mm256_fmadd_ps(_mm256_permutevar_ps(four, places),
                                          weights, sums[half][row]);
      }
    }
  }
}

// There are registers for the sums of four rows.
template <int M>
[[PARTITA_AVX2]] void ComputeAvx2(const SparsePart& part) {
  if constexpr (M > 4) {
    ComputeAvx2<4>(part);
    SparsePart others = part;
    others.lhs += 4 * part.lhs_stride;
    others.sums += 4 * part.sums_stride;
    return ComputeAvx2<M - 4>(others);
  }
  const Tail tail(part, M);
  for (int64_t column = part.begin; column < part.end; column += kLanes) {
    const Panel panel = PanelOf(part, column);
    __m256 sums[2][M] = {};
    const int64_t whole = part.depth / kGroup;
    for (int64_t group = 0; group < whole; ++group)
      AddGroup<M>(panel, group, part.lhs + group * kGroup, part.lhs_stride,
                  sums);
    if (part.depth % kGroup != 0)
      AddGroup<M>(panel, whole, tail.lhs, kGroup, sums);
    PARTITA_UNROLL
    for (int half = 0; half < 2; ++half) {
      PARTITA_UNROLL
      for (int row = 0; row < M; ++row)
        _mm256_storeu_ps(
            part.sums + row * part.sums_stride + column - part.begin + half * 8,
            sums[half][row]);
    }
  }
}

template <int M>
void ComputePlain(const SparsePart& part) {
  const Tail tail(part, M);
  const int64_t groups = Groups(part.depth), whole = part.depth / kGroup;
  for (int64_t column = part.begin; column < part.end; column += kLanes) {
    const Panel panel = PanelOf(part, column);
    float sums[M][kLanes] = {};
    for (int64_t group = 0; group < groups; ++group)
      for (int64_t i = 0; i < kKept; ++i) {
        const float* const weights =
            panel.weights + group * kGroupWeights + i * kLanes;
        const uint32_t places = panel.places[group * kKept + i];
        for (int row = 0; row < M; ++row) {
          const float* const four =
              group < whole ? part.lhs + row * part.lhs_stride + group * kGroup
                            : tail.lhs + row * kGroup;
          for (int64_t lane = 0; lane < kLanes; ++lane)
            sums[row][lane] += four[places >> (2 * lane) & 3] * weights[lane];
        }
      }
    for (int row = 0; row < M; ++row)
      std::copy(sums[row], sums[row] + kLanes,
                part.sums + row * part.sums_stride + column - part.begin);
  }
}

// The kernels of 1 to 8 rows.
using RowsKernel = void (*)(const SparsePart&);
#define PARTITA_ROWS(kernel)                       \
  {&kernel<1>, &kernel<2>, &kernel<3>, &kernel<4>, \
   &kernel<5>, &kernel<6>, &kernel<7>, &kernel<8>}
constexpr RowsKernel kAvx512[] = PARTITA_ROWS(ComputeAvx512),
                     kAvx2[] = PARTITA_ROWS(ComputeAvx2),
                     kPlain[] = PARTITA_ROWS(ComputePlain);
#undef PARTITA_ROWS
#undef PARTITA_AVX2
#undef PARTITA_AVX512
#undef PARTITA_UNROLL

template <const RowsKernel* kKernels>
void Compute(const SparsePart& part, int64_t rows) {
  kKernels[rows - 1](part);
  if (!AllFinite(part, rows)) AddLeftOutWeights(part, rows);
}

}  // namespace

bool IsPrunedTwoOfFour(const MatrixView& matrix) {
  const auto is_pruned = [&](int64_t group, int64_t column) {
    float weights[kGroup];
    LoadGroup(matrix, group, column, weights);
    return __builtin_popcount(static_cast<unsigned>(Mask(weights))) <= kKept;
  };
  const int64_t groups = Groups(matrix.depth);
  // In the order of memory.
  if (matrix.column_stride == 1) {
    for (int64_t group = 0; group < groups; ++group)
      for (int64_t column = 0; column < matrix.columns; ++column)
        if (!is_pruned(group, column)) return false;
    return true;
  }
  for (int64_t column = 0; column < matrix.columns; ++column)
    for (int64_t group = 0; group < groups; ++group)
      if (!is_pruned(group, column)) return false;
  return true;
}

int64_t PackedPrunedBytes(int64_t depth, int64_t columns) {
  return WeightCount(depth, columns) * static_cast<int64_t>(sizeof(float)) +
         SparsePanels(columns) * Groups(depth) * kKept *
             static_cast<int64_t>(sizeof(uint32_t));
}

void PackPruned(const MatrixView& matrix, void* packed) {
  float* weights = static_cast<float*>(packed);
  auto* places = reinterpret_cast<uint32_t*>(
      weights + WeightCount(matrix.depth, matrix.columns));
  for (int64_t first = 0; first < matrix.columns; first += kLanes)
    for (int64_t group = 0; group < Groups(matrix.depth); ++group) {
      places[0] = places[1] = 0;
      std::fill(weights, weights + kGroupWeights, 0.0F);
      const int64_t lanes = std::min(kLanes, matrix.columns - first);
      for (int64_t lane = 0; lane < lanes; ++lane) {
        float four[kGroup];
        LoadGroup(matrix, group, first + lane, four);
        const Places kept = kPlaces[Mask(four)];
        weights[lane] = four[kept.low];
        weights[kLanes + lane] = four[kept.high];
        places[0] |= static_cast<uint32_t>(kept.low) << (2 * lane);
        places[1] |= static_cast<uint32_t>(kept.high) << (2 * lane);
      }
      weights += kGroupWeights;
      places += kKept;
    }
}

std::vector<SparseKernel> PrunedKernels() {
  return SparseKernels(Compute<kAvx512>, Compute<kAvx2>, Compute<kPlain>);
}

}  // namespace partita::cpu
