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

#include "runtime/cpu/sparse_part.h"

namespace partita::cpu {

// True if at most two of each four consecutive k have weights other than zero,
// in every column. Reads an unpruned matrix no further than its first groups.
bool IsPrunedTwoOfFour(const MatrixView& matrix);

// Bytes of a packed matrix, and its content. Requires IsPrunedTwoOfFour.
int64_t PackedPrunedBytes(int64_t depth, int64_t columns);
void PackPruned(const MatrixView& matrix, void* packed);

// The kernels that this processor can run, the fastest first.
std::vector<SparseKernel> PrunedKernels();

}  // namespace partita::cpu

#endif  // PARTITA_RUNTIME_CPU_PRUNED_ROWS_H_
