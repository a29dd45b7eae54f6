// If a matrix's columns are contiguous in memory, a column of the result is a
// sum of products; else eight rows of the matrix at a time are added to the
// results, or the rows of a panel to sums in registers.
#include "runtime/cpu/row_kernels.h"

#include <algorithm>
#include <cstring>

#include "runtime/cpu/best_clone.h"

namespace partita::cpu {
namespace {

constexpr int64_t kLanes = kRowLanes, kPitch = kRowPitch;
// Rows of the matrix that are read at once.
constexpr int kDepth = 8;
// Elements from a read to the one that is prefetched beside it. Hardware
// prefetches no further than the end of a page. Measured with two threads on
// GPT-2's matrices: rows 35 GB/s instead of 31, columns 39 instead of 36.
constexpr int64_t kPanelsAhead = 512, kColumnsAhead = 1024;

using Vector = float __attribute__((vector_size(64)));

// Vectors cross no calls: everything that handles them is inlined into a
// function for one processor.
#define PARTITA_INLINE [[gnu::always_inline]] inline
// Sums stay in registers only if loops over them are unrolled.
#define PARTITA_UNROLL _Pragma("GCC unroll 8")

PARTITA_INLINE Vector Load(const float* from) {
  Vector vector;
  __builtin_memcpy(&vector, from, sizeof(vector));
  return vector;
}
PARTITA_INLINE void Store(float* to, const Vector& vector) {
  __builtin_memcpy(to, &vector, sizeof(vector));
}

// The matrix has contiguous rows.
template <int M>
PARTITA_INLINE void AddRows(const RowPart& part) {
  const int64_t width = part.end - part.begin, whole = width / kLanes * kLanes;
  for (int row = 0; row < M; ++row)
    std::memset(part.sums + row * kPitch, 0,
                static_cast<size_t>(width) * sizeof(float));
  for (int64_t k = 0; k < part.depth; k += kDepth) {
    const int count =
        static_cast<int>(std::min<int64_t>(kDepth, part.depth - k));
    const float* const matrix = part.matrix + k * part.row_stride + part.begin;
    float lhs[M * kDepth];
    for (int row = 0; row < M; ++row)
      for (int i = 0; i < count; ++i)
        lhs[row * kDepth + i] = part.lhs[row * part.lhs_stride + k + i];
    if (count == kDepth) {
      for (int64_t n = 0; n < whole; n += kLanes) {
        Vector sums[M];
        PARTITA_UNROLL
        for (int row = 0; row < M; ++row)
          sums[row] = Load(part.sums + row * kPitch + n);
        PARTITA_UNROLL
        for (int i = 0; i < kDepth; ++i) {
          const Vector weights = Load(matrix + i * part.row_stride + n);
          PARTITA_UNROLL
          for (int row = 0; row < M; ++row)
            sums[row] += lhs[row * kDepth + i] * weights;
        }
        PARTITA_UNROLL
        for (int row = 0; row < M; ++row)
          Store(part.sums + row * kPitch + n, sums[row]);
      }
    }
    const int64_t first = count == kDepth ? whole : 0;
    for (int i = 0; i < count; ++i)
      for (int row = 0; row < M; ++row)
        for (int64_t n = first; n < width; ++n)
          part.sums[row * kPitch + n] +=
              lhs[row * kDepth + i] * matrix[i * part.row_stride + n];
  }
}

// `C` columns of the result; the matrix has contiguous columns.
template <int M, int C>
PARTITA_INLINE void SumColumns(const RowPart& part, int64_t column) {
  Vector sums[C][M] = {};
  const int64_t whole = part.depth / kLanes * kLanes;
  const float* const matrix = part.matrix + column * part.column_stride;
  for (int64_t k = 0; k < whole; k += kLanes) {
    PARTITA_UNROLL
    for (int c = 0; c < C; ++c) {
      const float* const from = matrix + c * part.column_stride + k;
      __builtin_prefetch(from + kColumnsAhead, 0, 2);
      const Vector weights = Load(from);
      PARTITA_UNROLL
      for (int row = 0; row < M; ++row)
        sums[c][row] += Load(part.lhs + row * part.lhs_stride + k) * weights;
    }
  }
  PARTITA_UNROLL
  for (int c = 0; c < C; ++c) {
    PARTITA_UNROLL
    for (int row = 0; row < M; ++row) {
      float sum = 0;
      for (int64_t lane = 0; lane < kLanes; ++lane) sum += sums[c][row][lane];
      for (int64_t k = whole; k < part.depth; ++k)
        sum += part.lhs[row * part.lhs_stride + k] *
               matrix[c * part.column_stride + k];
      part.sums[row * kPitch + column - part.begin + c] = sum;
    }
  }
}

// The matrix is packed: a panel is one run of memory.
template <int M>
PARTITA_INLINE void SumPanels(const RowPart& part) {
  constexpr int kVectors = kPanelColumns / kLanes;
  for (int64_t column = part.begin; column < part.end;
       column += kPanelColumns) {
    const float* const panel = part.panels + column * part.depth;
    Vector sums[kVectors][M] = {};
    for (int64_t k = 0; k < part.depth; ++k) {
      const float* const weights = panel + k * kPanelColumns;
      PARTITA_UNROLL
      for (int i = 0; i < kVectors; ++i) {
        // Into the second-level cache, which has more reads under way than the
        // first. The next panel is read next.
        __builtin_prefetch(weights + i * kLanes + kPanelsAhead, 0, 2);
        const Vector vector = Load(weights + i * kLanes);
        PARTITA_UNROLL
        for (int row = 0; row < M; ++row)
          sums[i][row] += part.lhs[row * part.lhs_stride + k] * vector;
      }
    }
    PARTITA_UNROLL
    for (int i = 0; i < kVectors; ++i) {
      PARTITA_UNROLL
      for (int row = 0; row < M; ++row)
        Store(part.sums + row * kPitch + column - part.begin + i * kLanes,
              sums[i][row]);
    }
  }
}

template <int M>
PARTITA_INLINE void Compute(const RowPart& part) {
  if (part.panels != nullptr) return SumPanels<M>(part);
  if (part.column_stride == 1 && part.row_stride != 1) return AddRows<M>(part);
  constexpr int kColumns = M <= 4 ? 4 : 2;
  int64_t column = part.begin;
  for (; column + kColumns <= part.end; column += kColumns)
    SumColumns<M, kColumns>(part, column);
  for (; column < part.end; ++column) SumColumns<M, 1>(part, column);
}

PARTITA_INLINE void ComputeRows(const RowPart& part, int64_t rows) {
  switch (rows) {
    case 1:
      return Compute<1>(part);
    case 2:
      return Compute<2>(part);
    case 3:
      return Compute<3>(part);
    case 4:
      return Compute<4>(part);
    case 5:
      return Compute<5>(part);
    case 6:
      return Compute<6>(part);
    case 7:
      return Compute<7>(part);
    default:
      return Compute<8>(part);
  }
}

[[gnu::target("avx512f,avx512vl,fma")]] void ComputeAvx512(const RowPart& part,
                                                           int64_t rows) {
  ComputeRows(part, rows);
}
[[gnu::target("avx2,fma")]] void ComputeAvx2(const RowPart& part,
                                             int64_t rows) {
  ComputeRows(part, rows);
}
void ComputePlain(const RowPart& part, int64_t rows) {
  ComputeRows(part, rows);
}

}  // namespace

RowKernel ChooseRowKernel() {
  return BestClone<RowKernel>(ComputeAvx512, ComputeAvx2, ComputePlain);
}

}  // namespace partita::cpu
