// A cubic curve: fast while many weights are redundant, slow at the end.
#include "runtime/train/prune_schedule.h"

#include "absl/strings/str_cat.h"

namespace partita::train {

absl::Status CheckPruneSchedule(const PruneSchedule& schedule) {
  if (schedule.begin < 0 || schedule.end < schedule.begin)
    return absl::InvalidArgumentError(absl::StrCat(
        "expected the step of the last pruning at or behind the first, found ",
        schedule.begin, " and ", schedule.end));
  if (schedule.every < 1 ||
      (schedule.end - schedule.begin) % schedule.every != 0)
    return absl::InvalidArgumentError(absl::StrCat(
        "expected an interval that divides the ", schedule.end - schedule.begin,
        " steps from the first pruning to the last, found ", schedule.every));
  if (!(schedule.first >= 0 && schedule.first <= schedule.last &&
        schedule.last <= 1))
    return absl::InvalidArgumentError(absl::StrCat(
        "expected two shares of zeros from 0 to 1, the smaller first, found ",
        schedule.first, " and ", schedule.last));
  return absl::OkStatus();
}

bool PrunesAfter(const PruneSchedule& schedule, int64_t step) {
  return step >= schedule.begin && step <= schedule.end &&
         (step - schedule.begin) % schedule.every == 0;
}

double SparsityAfter(const PruneSchedule& schedule, int64_t step) {
  if (step >= schedule.end) return schedule.last;
  const double rest =
      1 - static_cast<double>(step - schedule.begin) /
              static_cast<double>(schedule.end - schedule.begin);
  return schedule.last + (schedule.first - schedule.last) * rest * rest * rest;
}

}  // namespace partita::train
