// A packed matrix begins with the index of each panel's first run, and the
// number of all runs. Then come the runs' weights, then their rows.
#include "runtime/cpu/zero_runs.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "runtime/cpu/best_clone.h"

namespace partita::cpu {
namespace {

constexpr int64_t kLanes = 16;
// Runs that decide whether it pays to count all.
constexpr int64_t kSamples = 256;
// Distance, in weights, of software's prefetches.
constexpr int64_t kAhead = 512;

using Vector = float __attribute__((vector_size(64)));

int64_t Panels(int64_t columns) { return (columns + kLanes - 1) / kLanes; }
// Weights begin at a multiple of 64 bytes.
int64_t IndexCount(int64_t columns) {
  return (Panels(columns) + 1 + 7) / 8 * 8;
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
          reinterpret_cast<const int32_t*>(weights +
                                           first[Panels(columns)] * kLanes)};
}

bool IsZeroRun(const MatrixView& matrix, int64_t k, int64_t column) {
  const int64_t end = std::min(matrix.columns, column + kLanes);
  const float* const row = matrix.data + k * matrix.row_stride;
  for (int64_t n = column; n < end; ++n)
    if (row[n * matrix.column_stride] != 0) return false;
  return true;
}

// Adds the terms of runs that were left out: 0 times infinity or NaN.
void AddLeftOut(const PrunedPart& part, int64_t rows) {
  const Packed packed = Read(part.packed, part.columns);
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t k = 0; k < part.depth; ++k) {
      const float number = part.lhs[row * part.lhs_stride + k];
      if (std::isfinite(number)) continue;
      for (int64_t n = part.begin; n < part.end; ++n) {
        const int64_t panel = n / kLanes;
        if (!std::binary_search(packed.rows + packed.first[panel],
                                packed.rows + packed.first[panel + 1], k))
          part.sums[row * part.sums_stride + n - part.begin] += number * 0.0F;
      }
    }
}

// Vectors cross no calls: everything that handles them is inlined into a
// function for one processor.
#define PARTITA_INLINE [[gnu::always_inline]] inline
#define PARTITA_UNROLL _Pragma("GCC unroll 8")

template <int M>
PARTITA_INLINE void SumRuns(const PrunedPart& part, const float* lhs,
                            float* to) {
  const Packed packed = Read(part.packed, part.columns);
  for (int64_t column = part.begin; column < part.end; column += kLanes) {
    const int64_t panel = column / kLanes, end = packed.first[panel + 1];
    Vector sums[M] = {};
    for (int64_t run = packed.first[panel]; run < end; ++run) {
      const float* const from = packed.weights + run * kLanes;
      __builtin_prefetch(from + kAhead, 0, 2);
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

PARTITA_INLINE void SumRows(const PrunedPart& part, int64_t rows,
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
PARTITA_INLINE void SumAll(const PrunedPart& part, int64_t rows) {
  float zero = 0;
  for (int64_t row = 0; row < rows; row += kMost)
    SumRows(part, std::min<int64_t>(kMost, rows - row),
            part.lhs + row * part.lhs_stride,
            part.sums + row * part.sums_stride);
  for (int64_t row = 0; row < rows; ++row) {
    Vector zeros = {};
    const float* const lhs = part.lhs + row * part.lhs_stride;
    int64_t k = 0;
    for (; k + kLanes <= part.depth; k += kLanes) {
      Vector elements;
      __builtin_memcpy(&elements, lhs + k, sizeof(elements));
      zeros += elements * 0.0F;
    }
    for (; k < part.depth; ++k) zero += lhs[k] * 0.0F;
    for (int64_t lane = 0; lane < kLanes; ++lane) zero += zeros[lane];
  }
  if (!(zero == 0)) AddLeftOut(part, rows);
}

[[gnu::target("avx512f,avx512bw,avx512vl,fma")]] void ComputeAvx512(
    const PrunedPart& part, int64_t rows) {
  SumAll<8>(part, rows);
}
[[gnu::target("avx2,fma")]] void ComputeAvx2(const PrunedPart& part,
                                             int64_t rows) {
  SumAll<4>(part, rows);
}
void ComputePlain(const PrunedPart& part, int64_t rows) {
  SumAll<2>(part, rows);
}

}  // namespace

int64_t CountRuns(const MatrixView& matrix, double most) {
  const int64_t panels = Panels(matrix.columns), all = panels * matrix.depth;
  int64_t kept = 0;
  for (int64_t i = 0; i < kSamples; ++i) {
    const int64_t run = i * 2654435761 % all;
    kept += IsZeroRun(matrix, run / panels, run % panels * kLanes) ? 0 : 1;
  }
  // A matrix that is worth it has more samples in one of 10,000 cases.
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
  const int64_t panels = Panels(matrix.columns);
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

std::vector<PrunedKernel> RunKernels() {
  const PrunedKernel avx512 = ComputeAvx512, avx2 = ComputeAvx2,
                     plain = ComputePlain;
  const PrunedKernel best = BestClone(avx512, avx2, plain);
  if (best == avx512) return {avx512, avx2, plain};
  if (best == avx2) return {avx2, plain};
  return {plain};
}

}  // namespace partita::cpu
