// Prunes the weights of a training run between its steps.
#ifndef PARTITA_RUNTIME_SESSION_PRUNER_H_
#define PARTITA_RUNTIME_SESSION_PRUNER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/session/open_ranks.h"
#include "runtime/train/prune_schedule.h"

namespace partita::session {

struct PruneOptions {
  train::PruneSchedule schedule;
  // Patterns of weights (fnmatch), separated by ';'; those after '!' exclude.
  // Empty: nothing is pruned.
  std::string weights;
  // Choose the smallest of all weights together, not of each one.
  bool is_global = false;
};

// The zeros are the mask: a program compiled with --keep-zeros leaves them
// alone, checkpoints contain them, and a resumed run needs no other state.
class Pruner {
 public:
  // Finds the weights: trained parameters of floats with two and more
  // dimensions that the patterns match. The ranks must outlive this object.
  // FailedPrecondition in a job of several processes, which have parts of
  // weights, and for pipelines without a flush, whose steps use older weights.
  // NotFound if a pattern matches no weight.
  static absl::StatusOr<Pruner> Make(executor::RankGroup& ranks,
                                     const PruneOptions& options);

  // Call after each step, and with 0 before the first: prunes if the schedule
  // says so. FailedPrecondition if a weight is not finite, or if fewer of its
  // elements are zero than after the last pruning.
  absl::Status AfterStep(int64_t step);

 private:
  struct Weight {
    base::TensorSpec spec;  // whole
    int64_t zeros = 0;      // after the last pruning
  };

  Pruner(executor::RankGroup& ranks, const PruneOptions& options)
      : ranks_(&ranks), options_(options) {}
  absl::StatusOr<std::vector<float>> Read(const Weight& weight) const;
  absl::Status Prune(int64_t step, std::vector<std::vector<float>>& values);

  executor::RankGroup* ranks_;
  PruneOptions options_;
  std::vector<Weight> weights_;
  // Step of the first pruning of this session; the next one is checked, too.
  int64_t first_ = -1;
};

}  // namespace partita::session

#endif  // PARTITA_RUNTIME_SESSION_PRUNER_H_
