// Products with a matrix of f32 in which many runs of 16 columns of a row are
// zero: weights pruned by blocks, or whole rows. A packed matrix holds the
// other runs, in panels of 16 columns, and their rows. Results are as in
// pruned_rows.h.
#ifndef PARTITA_RUNTIME_CPU_ZERO_RUNS_H_
#define PARTITA_RUNTIME_CPU_ZERO_RUNS_H_

#include <cstdint>
#include <vector>

#include "runtime/cpu/sparse_part.h"

namespace partita::cpu {

// The number of runs with a weight other than zero, or -1 if their share is
// larger than `most`. Reads little of a matrix with few runs of zeros.
int64_t CountRuns(const MatrixView& matrix, double most);

// Bytes of a packed matrix with `runs` of CountRuns, and its content.
int64_t PackedRunsBytes(int64_t depth, int64_t columns, int64_t runs);
void PackRuns(const MatrixView& matrix, void* packed);

// The kernels that this processor can run, the fastest first.
std::vector<SparseKernel> RunKernels();

}  // namespace partita::cpu

#endif  // PARTITA_RUNTIME_CPU_ZERO_RUNS_H_
