// The inner loops of products of a few rows, for the processor at hand.
#ifndef PARTITA_RUNTIME_CPU_ROW_KERNELS_H_
#define PARTITA_RUNTIME_CPU_ROW_KERNELS_H_

#include <cstdint>

#include "runtime/cpu/rhs_panels.h"

namespace partita::cpu {

inline constexpr int64_t kRowLanes = 16;
// Most columns of a part: their sums stay in the first-level cache.
inline constexpr int64_t kRowTile = 1024;
// Elements from one row of sums to the next. Rows do not begin at the same
// place of a page, where caches would confuse them.
inline constexpr int64_t kRowPitch = kRowTile + 3 * kRowLanes;

// The columns [begin, end) of the result, for one thread.
struct RowPart {
  const float* lhs;     // row r at lhs + r * lhs_stride
  const float* matrix;  // element (k, n) at k * row_stride + n * column_stride
  float* sums;          // row r at sums + r * kRowPitch; column `begin` first
  int64_t lhs_stride, row_stride, column_stride;
  int64_t depth;  // k
  int64_t begin, end;
  // If set, read in place of `matrix`: element (k, n) is at
  // ((n / kPanelColumns) * depth + k) * kPanelColumns + n % kPanelColumns.
  // `begin` and `end` are then multiples of kPanelColumns.
  const float* panels = nullptr;
};

// Computes the sums of 1 to 8 rows. Sums of a column are added up in the same
// order with panels and without.
using RowKernel = void (*)(const RowPart& part, int64_t rows);
RowKernel ChooseRowKernel();

}  // namespace partita::cpu

#endif  // PARTITA_RUNTIME_CPU_ROW_KERNELS_H_
