// Products of a few rows with a matrix of f32 that is pruned 2:4: of each four
// terms of a sum, at most two weights are not zero. A packed matrix holds two
// weights of each four and their places: 17/32 of the bytes.
//
// Results are equal to sums over the whole matrix in the same order. Infinity
// or NaN times zero is NaN: if rows have such elements, their products with the
// weights that were left out are added in a second pass.
#ifndef PARTITA_RUNTIME_CPU_PRUNED_ROWS_H_
#define PARTITA_RUNTIME_CPU_PRUNED_ROWS_H_

#include <cstdint>
#include <vector>

namespace partita::cpu {

// Element (k, n) is at data + k * row_stride + n * column_stride.
struct MatrixView {
  const float* data;
  int64_t depth, columns;  // k, n
  int64_t row_stride, column_stride;
};

// True if at most two of each four consecutive k have weights other than zero,
// in every column. Reads an unpruned matrix no further than its first groups.
bool IsPrunedTwoOfFour(const MatrixView& matrix);

// Bytes of a packed matrix, and its content. Requires IsPrunedTwoOfFour.
int64_t PackedPrunedBytes(int64_t depth, int64_t columns);
void PackPruned(const MatrixView& matrix, void* packed);

// The columns [begin, end) of the result, for one thread. `begin` is a multiple
// of 16.
struct PrunedPart {
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
using PrunedKernel = void (*)(const PrunedPart& part, int64_t rows);
// The kernels that this processor can run, the fastest first.
std::vector<PrunedKernel> PrunedKernels();

}  // namespace partita::cpu

#endif  // PARTITA_RUNTIME_CPU_PRUNED_ROWS_H_
