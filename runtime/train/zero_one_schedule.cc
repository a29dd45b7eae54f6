#include "runtime/train/zero_one_schedule.h"

#include <algorithm>

namespace partita::train {
namespace {

// Limits shifts; no run has as many steps.
constexpr int64_t kLongestInterval = int64_t{1} << 40;

bool UpdatesVariance(int64_t doubling, int64_t step) {
  int64_t first = 1;
  for (int64_t interval = 1; interval < kLongestInterval; interval *= 2) {
    // Division instead of a product that could overflow.
    if ((step - first) / interval < doubling)
      return (step - first) % interval == 0;
    first += doubling * interval;
  }
  return false;
}

}  // namespace

ZeroOneStep KindOf(const ZeroOneSchedule& schedule, int64_t step) {
  if (step <= schedule.variance_until)
    return UpdatesVariance(schedule.variance_doubling, step)
               ? ZeroOneStep::kVariance
               : ZeroOneStep::kExchange;
  const int64_t after = step - schedule.variance_until - 1,
                doublings =
                    std::min<int64_t>(after / schedule.local_doubling, 40),
                interval =
                    std::min(schedule.local_limit, int64_t{1} << doublings),
                place = after % schedule.local_doubling + 1;
  const bool exchanges = place % interval == 0 ||
                         place == schedule.local_doubling ||
                         step == schedule.steps;
  return exchanges ? ZeroOneStep::kExchange : ZeroOneStep::kLocal;
}

}  // namespace partita::train
