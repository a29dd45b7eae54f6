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
//   one_cycle, one_cycle_linear   of N steps w rise; w = 0: 0.3 N
//       rises from a to 1 until step w, then falls to m in step N, along half
//       a cosine or a line: a + (1 - a) g((s - 1) / (w - 1)), then
//       m + (1 - m) g(1 - (s - w) / (N - w)), with g(p) = (1 - cos(pi p)) / 2
//       or p. There is no warm-up before. This is PyTorch's OneCycleLR with
//       pct_start = w / N, div_factor = 1 / a and final_div_factor = a / m, and
//       the cycle of DeepSpeed's OneCycle (Smith and Topin, 2017).
//   range_test, range_test_linear  a^(1 - p) and a + (1 - a) p, with
//       p = (s - 1) / (N - 1): a learning-rate range test (Smith, 2015)
// The first share a is 1/25 for one_cycle and 1e-6 for range_test if it is 0.
//
// So linear and cosine would reach rate * m in step N + 1: the last step of a
// run still changes the parameters. These are the rates of PyTorch's
// CosineAnnealingLR and of Hugging Face's schedules, which count previous steps
// (s - 1), except that Hugging Face's warm-up, (s - 1) / w, begins with a step
// of rate 0.
struct Schedule {
  enum class Kind {
    kConstant,
    kLinear,
    kCosine,
    kInverseSqrt,
    kOneCycle,
    kOneCycleLinear,
    kRangeTest,
    kRangeTestLinear
  };
  Kind kind = Kind::kConstant;
  double rate = 1e-3;
  int64_t steps = 1;   // N
  int64_t warmup = 0;  // w
  double minimum = 0;  // m, a share of the rate, 0 to 1
  double first = 0;    // a, a share of the rate, 0 to 1; 0: the kind's default
};

// True for a schedule whose rates rise once and fall once.
bool IsOneCycle(Schedule::Kind kind);
// True for a schedule whose rates rise to find the largest usable one.
bool IsRangeTest(Schedule::Kind kind);
// True for a schedule whose rates fall to Schedule::minimum.
bool HasMinimum(Schedule::Kind kind);

// The name that ParseScheduleKind takes.
std::string ScheduleName(Schedule::Kind kind);

// "constant", "linear", "cosine", "inverse_sqrt", "one_cycle",
// "one_cycle_linear", "range_test", "range_test_linear".
absl::StatusOr<Schedule::Kind> ParseScheduleKind(const std::string& name);

// InvalidArgument if the rate is not a positive number, a share is not in
// [0, 1], there are more warm-up steps than steps, or a range test has any.
absl::Status CheckSchedule(const Schedule& schedule);

// Rate of step s, from 1 on, in f64; the program gets it rounded to f32.
double LearningRate(const Schedule& schedule, int64_t step);

// How the rate scales with the batch size, from batches of `base` examples: by
// the ratio of the sizes (Goyal et al., 2017; SGD), its square root
// (Krizhevsky, 2014; You et al., 2020: LAMB; Adam), or not at all.
enum class BatchRule { kNone, kLinear, kSqrt };

// "none", "linear", "sqrt".
absl::StatusOr<BatchRule> ParseBatchRule(const std::string& name);

// Factor for the rate; both sizes must be at least 1.
double BatchFactor(BatchRule rule, int64_t base, int64_t batch);

}  // namespace partita::train

#endif  // PARTITA_RUNTIME_TRAIN_SCHEDULE_H_
