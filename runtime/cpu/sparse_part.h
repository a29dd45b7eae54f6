// What products with sparse weights of f32 share (pruned_rows.h, zero_runs.h).
#ifndef PARTITA_RUNTIME_CPU_SPARSE_PART_H_
#define PARTITA_RUNTIME_CPU_SPARSE_PART_H_

#include <cmath>
#include <cstdint>
#include <vector>

#include "runtime/cpu/best_clone.h"

namespace partita::cpu {

// Packed matrices have panels of this many columns.
inline constexpr int64_t kSparseLanes = 16;
// Distance, in weights, of software's prefetches: hardware prefetches no
// further than the end of a page.
inline constexpr int64_t kSparseAhead = 512;

inline int64_t SparsePanels(int64_t columns) {
  return (columns + kSparseLanes - 1) / kSparseLanes;
}

// Element (k, n) is at data + k * row_stride + n * column_stride.
struct MatrixView {
  const float* data;
  int64_t depth, columns;  // k, n
  int64_t row_stride, column_stride;
};

// The columns [begin, end) of the result, for one thread. `begin` is a multiple
// of 16.
struct SparsePart {
  const float* lhs;  // row r at lhs + r * lhs_stride; k contiguous
  int64_t lhs_stride;
  const void* packed;
  int64_t depth, columns;  // of the whole matrix
  // Row r at sums + r * sums_stride, column `begin` first. Columns up to the
  // next multiple of 16 after `end` are written too.
  float* sums;
  int64_t sums_stride;
  int64_t begin, end;
};

// Computes the sums of 1 to 8 rows.
using SparseKernel = void (*)(const SparsePart& part, int64_t rows);

// Those of three kernels that this processor can run, the fastest first.
inline std::vector<SparseKernel> SparseKernels(SparseKernel avx512,
                                               SparseKernel avx2,
                                               SparseKernel plain) {
  const SparseKernel best = BestClone(avx512, avx2, plain);
  if (best == avx512) return {avx512, avx2, plain};
  if (best == avx2) return {avx2, plain};
  return {plain};
}

// True if no element of the rows is infinite or NaN.
inline bool AllFinite(const SparsePart& part, int64_t rows) {
  constexpr int64_t kSums = 4 * kSparseLanes;
  float zero = 0;
  for (int64_t row = 0; row < rows; ++row) {
    float sums[kSums] = {};
    const float* const lhs = part.lhs + row * part.lhs_stride;
    int64_t k = 0;
    for (; k + kSums <= part.depth; k += kSums)
      for (int64_t i = 0; i < kSums; ++i) sums[i] += lhs[k + i] * 0.0F;
    for (; k < part.depth; ++k) zero += lhs[k] * 0.0F;
    for (const float sum : sums) zero += sum;
  }
  return zero == 0;
}

// Adds the terms of weights that are not stored, which are 0 times an element
// of a row: NaN if the element is infinite or NaN. `stores(k, column)` tells
// which are stored.
template <typename Stores>
void AddLeftOut(const SparsePart& part, int64_t rows, const Stores& stores) {
  for (int64_t row = 0; row < rows; ++row) {
    const float* const lhs = part.lhs + row * part.lhs_stride;
    float* const sums = part.sums + row * part.sums_stride;
    bool all_nan = false;
    for (int64_t k = 0; k < part.depth && !all_nan; ++k) {
      if (std::isfinite(lhs[k])) continue;
      all_nan = true;
      for (int64_t n = part.begin; n < part.end; ++n) {
        float& sum = sums[n - part.begin];
        if (std::isnan(sum)) continue;
        if (stores(k, n))
          all_nan = false;
        else
          sum += lhs[k] * 0.0F;
      }
    }
  }
}

}  // namespace partita::cpu

#endif  // PARTITA_RUNTIME_CPU_SPARSE_PART_H_
