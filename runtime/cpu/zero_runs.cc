// A packed matrix begins with the index of each panel's first run, and the
// number of all runs. Then come the runs' weights, then their rows.
#include "runtime/cpu/zero_runs.h"

#include <algorithm>
#include <cstring>

namespace partita::cpu {
namespace {

constexpr int64_t kLanes = kSparseLanes;
// Runs that are looked at before all are.
constexpr int64_t kSamples = 256;
using Vector = float __attribute__((vector_size(64)));

// Weights begin at a multiple of 64 bytes.
int64_t IndexCount(int64_t columns) {
  return (SparsePanels(columns) + 1 + 7) / 8 * 8;
}

struct Packed {
  const int64_t* first;  // of each panel
  const float* weights;
  const int32_t* rows;
};
Packed Read(const void* packed, int64_t columns) {
  const auto* const first = static_cast<const int64_t*>(packed);
  const auto* const weights =
      reinterpret_cast<const float*>(first + IndexCount(columns));
  return {first, weights,
          reinterpret_cast<const int32_t*>(
              weights + first[SparsePanels(columns)] * kLanes)};
}

bool IsZeroRun(const MatrixView& matrix, int64_t k, int64_t column) {
  const int64_t end = std::min(matrix.columns, column + kLanes);
  const float* const row = matrix.data + k * matrix.row_stride;
  for (int64_t n = column; n < end; ++n)
    if (row[n * matrix.column_stride] != 0) return false;
  return true;
}

void AddLeftOutRuns(const SparsePart& part, int64_t rows) {
  const Packed packed = Read(part.packed, part.columns);
  AddLeftOut(part, rows, [&](int64_t k, int64_t column) {
    const int64_t panel = column / kLanes;
    return std::binary_search(packed.rows + packed.first[panel],
                              packed.rows + packed.first[panel + 1], k);
  });
}

// Vectors cross no calls: everything that handles them is inlined into a
// function for one processor.
#define PARTITA_INLINE [[gnu::always_inline]] inline
#define PARTITA_UNROLL _Pragma("GCC unroll 8")

template <int M>
PARTITA_INLINE void SumRuns(const SparsePart& part, const float* lhs,
                            float* to) {
  const Packed packed = Read(part.packed, part.columns);
  for (int64_t column = part.begin; column < part.end; column += kLanes) {
    const int64_t panel = column / kLanes, end = packed.first[panel + 1];
    Vector sums[M] = {};
    for (int64_t run = packed.first[panel]; run < end; ++run) {
      const float* const from = packed.weights + run * kLanes;
      __builtin_prefetch(from + kSparseAhead, 0, 2);
      Vector weights;
      __builtin_memcpy(&weights, from, sizeof(weights));
      const float* const elements = lhs + packed.rows[run];
      PARTITA_UNROLL
      for (int row = 0; row < M; ++row)
        sums[row] += elements[row * part.lhs_stride] * weights;
    }
    PARTITA_UNROLL
    for (int row = 0; row < M; ++row)
      __builtin_memcpy(to + row * part.sums_stride + column - part.begin,
                       &sums[row], sizeof(Vector));
  }
}

PARTITA_INLINE void SumRows(const SparsePart& part, int64_t rows,
                            const float* lhs, float* to) {
  switch (rows) {
    case 1:
      return SumRuns<1>(part, lhs, to);
    case 2:
      return SumRuns<2>(part, lhs, to);
    case 3:
      return SumRuns<3>(part, lhs, to);
    case 4:
      return SumRuns<4>(part, lhs, to);
    case 5:
      return SumRuns<5>(part, lhs, to);
    case 6:
      return SumRuns<6>(part, lhs, to);
    case 7:
      return SumRuns<7>(part, lhs, to);
    default:
      return SumRuns<8>(part, lhs, to);
  }
}

// `kMost` rows have sums in registers at a time.
template <int kMost>
PARTITA_INLINE void SumAll(const SparsePart& part, int64_t rows) {
  for (int64_t row = 0; row < rows; row += kMost)
    SumRows(part, std::min<int64_t>(kMost, rows - row),
            part.lhs + row * part.lhs_stride,
            part.sums + row * part.sums_stride);
  if (!AllFinite(part, rows)) AddLeftOutRuns(part, rows);
}

[[gnu::target("avx512f,avx512bw,avx512vl,fma")]] void ComputeAvx512(
    const SparsePart& part, int64_t rows) {
  SumAll<8>(part, rows);
}
[[gnu::target("avx2,fma")]] void ComputeAvx2(const SparsePart& part,
                                             int64_t rows) {
  SumAll<4>(part, rows);
}
void ComputePlain(const SparsePart& part, int64_t rows) {
  SumAll<2>(part, rows);
}

}  // namespace

int64_t CountRuns(const MatrixView& matrix, double most) {
  const int64_t panels = SparsePanels(matrix.columns),
                all = panels * matrix.depth;
  int64_t kept = 0;
  for (int64_t i = 0; i < kSamples; ++i) {
    const int64_t run = i * 2654435761 % all;
    kept += IsZeroRun(matrix, run / panels, run % panels * kLanes) ? 0 : 1;
  }
  // Four standard deviations more than the largest share.
  if (static_cast<double>(kept) > (most + 0.12) * kSamples) return -1;
  kept = 0;
  for (int64_t panel = 0; panel < panels; ++panel)
    for (int64_t k = 0; k < matrix.depth; ++k)
      kept += IsZeroRun(matrix, k, panel * kLanes) ? 0 : 1;
  return static_cast<double>(kept) <= most * static_cast<double>(all) ? kept
                                                                      : -1;
}

int64_t PackedRunsBytes(int64_t depth, int64_t columns, int64_t runs) {
  return IndexCount(columns) * static_cast<int64_t>(sizeof(int64_t)) +
         runs * (kLanes * static_cast<int64_t>(sizeof(float)) +
                 static_cast<int64_t>(sizeof(int32_t)));
}

void PackRuns(const MatrixView& matrix, void* packed) {
  auto* const first = static_cast<int64_t*>(packed);
  auto* const weights =
      reinterpret_cast<float*>(first + IndexCount(matrix.columns));
  const int64_t panels = SparsePanels(matrix.columns);
  std::vector<int32_t> rows;
  for (int64_t panel = 0; panel < panels; ++panel) {
    first[panel] = static_cast<int64_t>(rows.size());
    for (int64_t k = 0; k < matrix.depth; ++k) {
      if (IsZeroRun(matrix, k, panel * kLanes)) continue;
      float* const to = weights + static_cast<int64_t>(rows.size()) * kLanes;
      for (int64_t lane = 0; lane < kLanes; ++lane) {
        const int64_t n = panel * kLanes + lane;
        to[lane] =
            n < matrix.columns
                ? matrix.data[k * matrix.row_stride + n * matrix.column_stride]
                : 0;
      }
      rows.push_back(static_cast<int32_t>(k));
    }
  }
  first[panels] = static_cast<int64_t>(rows.size());
  if (!rows.empty())
    std::memcpy(weights + first[panels] * kLanes, rows.data(),
                rows.size() * sizeof(int32_t));
}

std::vector<SparseKernel> RunKernels() {
  return SparseKernels(ComputeAvx512, ComputeAvx2, ComputePlain);
}

}  // namespace partita::cpu
