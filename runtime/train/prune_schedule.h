// The share of zeros after each step of gradual pruning (Zhu and Gupta,
// "To prune, or not to prune", 2017).
#ifndef PARTITA_RUNTIME_TRAIN_PRUNE_SCHEDULE_H_
#define PARTITA_RUNTIME_TRAIN_PRUNE_SCHEDULE_H_

#include <cstdint>

#include "absl/status/status.h"

namespace partita::train {

// Weights are pruned after step `begin` (0: before the first step), then after
// every `every` steps up to `end`. The share of zeros is
// last + (first - last) * (1 - (step - begin) / (end - begin))^3.
struct PruneSchedule {
  int64_t begin = 0, end = 0, every = 1;  // steps
  double first = 0, last = 0;             // shares of zeros, from 0 to 1
};

// InvalidArgument unless 0 <= begin <= end, `every` is at least 1 and divides
// end - begin, and 0 <= first <= last <= 1.
absl::Status CheckPruneSchedule(const PruneSchedule& schedule);

// True if weights are pruned after `step`.
bool PrunesAfter(const PruneSchedule& schedule, int64_t step);

// The share of zeros after `step`, which is in [begin, end].
double SparsityAfter(const PruneSchedule& schedule, int64_t step);

}  // namespace partita::train

#endif  // PARTITA_RUNTIME_TRAIN_PRUNE_SCHEDULE_H_
