// The kinds of steps of 0/1 Adam over a run (Lu et al., 2022, section 6).
#ifndef PARTITA_RUNTIME_TRAIN_ZERO_ONE_SCHEDULE_H_
#define PARTITA_RUNTIME_TRAIN_ZERO_ONE_SCHEDULE_H_

#include <cstdint>

namespace partita::train {

// compiler/autodiff/zero_one_adam.h has their formulas.
enum class ZeroOneStep { kVariance, kExchange, kLocal };

// Until step `variance_until`, devices exchange something in every step: whole
// gradients in steps that update the variance, else momenta with one bit per
// element. The interval between variance updates is 1 for `variance_doubling`
// updates, then 2 for as many, then 4 and so on.
//
// After it, the variance stays. The interval between exchanges is 1 for
// `local_doubling` steps, then 2 for as many and so on, up to `local_limit`.
// The last step of each interval length and of the run is an exchange.
struct ZeroOneSchedule {
  int64_t steps = 1;  // of the run
  int64_t variance_until = 1, variance_doubling = 16;
  int64_t local_limit = 16, local_doubling = 1;
};

// The kind of step `step`, from 1 on. All fields are at least 1.
ZeroOneStep KindOf(const ZeroOneSchedule& schedule, int64_t step);

}  // namespace partita::train

#endif  // PARTITA_RUNTIME_TRAIN_ZERO_ONE_SCHEDULE_H_
