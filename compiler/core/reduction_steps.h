// Plans the steps in which a GPU reduces a tensor with too few results to fill
// it.
#ifndef PARTITA_COMPILER_CORE_REDUCTION_STEPS_H_
#define PARTITA_COMPILER_CORE_REDUCTION_STEPS_H_

#include <cstdint>
#include <vector>

namespace partita::core {

// One step: reduces a tensor of `shape` along `dims` (increasing); the result
// has shape `left`.
struct ReductionStep {
  std::vector<int64_t> shape, dims, left;
};

// Plans the reduction of a tensor of `shape` along `dims`: one step, or up to
// three if a cost model of reads and launches predicts that they are faster.
// The shape of each step is the result of the previous one, with at most one
// dimension split in two. Sizes are at least 1.
std::vector<ReductionStep> ReductionSteps(const std::vector<int64_t>& shape,
                                          const std::vector<int64_t>& dims);

}  // namespace partita::core

#endif  // PARTITA_COMPILER_CORE_REDUCTION_STEPS_H_
