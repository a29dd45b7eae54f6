// Smooths losses as they come, and compares differences at the end.
#include "runtime/train/rate_search.h"

#include <algorithm>
#include <cmath>

namespace partita::train {
namespace {

constexpr double kPast = 0.98;
constexpr double kDiverged = 4;
constexpr size_t kFirst = 10, kAfterLast = 1;

}  // namespace

absl::Status RateSearch::OnStep(const StepRecord& record) {
  if (!std::isfinite(record.loss)) {
    // The first losses may not be known yet.
    diverged_ |= !smoothed_.empty();
    return absl::OkStatus();
  }
  average_ = kPast * average_ + (1 - kPast) * record.loss;
  share_of_start_ *= kPast;
  const double smoothed = average_ / (1 - share_of_start_);
  if (smoothed_.empty() || smoothed < best_) best_ = smoothed;
  // Negative losses have no multiple that says anything.
  diverged_ |=
      smoothed_.size() > 1 && best_ > 0 && smoothed > kDiverged * best_;
  smoothed_.push_back(smoothed);
  rates_.push_back(record.rate);
  return absl::OkStatus();
}

// Differences are numpy.gradient's: central ones, and one-sided ones at the
// ends.
std::optional<double> RateSearch::SuggestRate() const {
  if (smoothed_.size() < kFirst + kAfterLast + 2) return std::nullopt;
  const size_t last = smoothed_.size() - kAfterLast - 1;
  double steepest = 0;
  size_t found = kFirst;
  for (size_t i = kFirst; i <= last; ++i) {
    const size_t before = i > kFirst ? i - 1 : i, after = std::min(i + 1, last);
    const double slope = (smoothed_[after] - smoothed_[before]) /
                         static_cast<double>(after - before);
    if (i > kFirst && slope >= steepest) continue;
    steepest = slope;
    found = i;
  }
  return rates_[found];
}

}  // namespace partita::train
