// In how many steps a GPU reduces a tensor whose results are too few to fill
// it.
#ifndef PARTITA_COMPILER_CORE_REDUCTION_STEPS_H_
#define PARTITA_COMPILER_CORE_REDUCTION_STEPS_H_

#include <cstdint>
#include <vector>

namespace partita::core {

// A tensor of `shape` is reduced along `dims` (increasing), which leaves
// `left`.
struct ReductionStep {
  std::vector<int64_t> shape, dims, left;
};

// How a tensor of `shape` is reduced along `dims`: one step, or up to three
// where a model of reads and launches finds these faster. The shape of each is
// what the one before left, with at most one dimension cut in two. Sizes are at
// least 1.
std::vector<ReductionStep> ReductionSteps(const std::vector<int64_t>& shape,
                                          const std::vector<int64_t>& dims);

}  // namespace partita::core

#endif  // PARTITA_COMPILER_CORE_REDUCTION_STEPS_H_
