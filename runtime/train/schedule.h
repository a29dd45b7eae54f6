// Learning rates over the steps of a run.
#ifndef PARTITA_RUNTIME_TRAIN_SCHEDULE_H_
#define PARTITA_RUNTIME_TRAIN_SCHEDULE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace partita::train {

// The rate of step s = 1, 2 ... N, with w steps of warm-up, is rate * f(s):
//   s <= w   f = s / w                                  for every kind, else
//   constant      1
//   linear        m + (1 - m) (1 - p)             p = (s - 1 - w) / (N - w),
//   cosine        m + (1 - m) (1 + cos(pi p)) / 2     at most 1
//   inverse_sqrt  max(m, sqrt(max(w, 1) / s))
// So linear and cosine would come to rate * m in step N + 1: the last step of a
// run still moves. These are the rates of Hugging Face's schedules and of
// PyTorch's CosineAnnealingLR, which are told how many steps were made before;
// only that Hugging Face's warm-up, (s - 1) / w, begins with a step of rate 0.
struct Schedule {
  enum class Kind { kConstant, kLinear, kCosine, kInverseSqrt };
  Kind kind = Kind::kConstant;
  double rate = 1e-3;
  int64_t steps = 1;   // N
  int64_t warmup = 0;  // w
  double minimum = 0;  // m, a share of the rate, 0 to 1
};

// "constant", "linear", "cosine", "inverse_sqrt".
absl::StatusOr<Schedule::Kind> ParseScheduleKind(const std::string& name);

// InvalidArgument where the rate is not a positive number, the minimum is not
// in [0, 1], or the warm-up does not end before the steps do.
absl::Status CheckSchedule(const Schedule& schedule);

// Of step s, from 1 on. In f64; the program gets it rounded to f32.
double LearningRate(const Schedule& schedule, int64_t step);

// What a rate that is right for batches of `base` examples is multiplied with
// for batches of another size: their ratio (Goyal et al., 2017; SGD), its
// square root (Krizhevsky, 2014; You et al., 2020: LAMB; Adam), or 1.
enum class BatchRule { kNone, kLinear, kSqrt };

// "none", "linear", "sqrt".
absl::StatusOr<BatchRule> ParseBatchRule(const std::string& name);

// Both sizes at least 1.
double BatchFactor(BatchRule rule, int64_t base, int64_t batch);

}  // namespace partita::train

#endif  // PARTITA_RUNTIME_TRAIN_SCHEDULE_H_
