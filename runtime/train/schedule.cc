// Implements the formulas of the header.
#include "runtime/train/schedule.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"

namespace partita::train {

absl::StatusOr<Schedule::Kind> ParseScheduleKind(const std::string& name) {
  if (name == "constant") return Schedule::Kind::kConstant;
  if (name == "linear") return Schedule::Kind::kLinear;
  if (name == "cosine") return Schedule::Kind::kCosine;
  if (name == "inverse_sqrt") return Schedule::Kind::kInverseSqrt;
  return absl::InvalidArgumentError(absl::StrCat(
      "expected constant, linear, cosine or inverse_sqrt, found '", name, "'"));
}

absl::Status CheckSchedule(const Schedule& schedule) {
  const auto wrong = [](const auto&... parts) {
    return absl::InvalidArgumentError(absl::StrCat(parts...));
  };
  if (!std::isfinite(schedule.rate) || schedule.rate <= 0)
    return wrong("expected a positive learning rate, found ", schedule.rate);
  if (!(schedule.minimum >= 0 && schedule.minimum <= 1))
    return wrong("expected a share of the learning rate from 0 to 1, found ",
                 schedule.minimum);
  if (schedule.steps < 1)
    return wrong("expected at least one step, found ", schedule.steps);
  if (schedule.warmup < 0 || schedule.warmup > schedule.steps)
    return wrong("expected at most as many steps of warm-up as there are (",
                 schedule.steps, "), found ", schedule.warmup);
  return absl::OkStatus();
}

double LearningRate(const Schedule& schedule, int64_t step) {
  const double s = static_cast<double>(step);
  const double w = static_cast<double>(schedule.warmup);
  const double m = schedule.minimum;
  if (step <= schedule.warmup) return schedule.rate * s / w;
  const double rest = static_cast<double>(
      std::max<int64_t>(schedule.steps - schedule.warmup, 1));
  const double p = std::min((s - 1 - w) / rest, 1.0);
  switch (schedule.kind) {
    case Schedule::Kind::kConstant:
      break;
    case Schedule::Kind::kLinear:
      return schedule.rate * (m + (1 - m) * (1 - p));
    case Schedule::Kind::kCosine:
      return schedule.rate * (m + (1 - m) * 0.5 * (1 + std::cos(M_PI * p)));
    case Schedule::Kind::kInverseSqrt:
      return schedule.rate * std::max(m, std::sqrt(std::max(w, 1.0) / s));
  }
  return schedule.rate;
}

absl::StatusOr<BatchRule> ParseBatchRule(const std::string& name) {
  if (name == "none") return BatchRule::kNone;
  if (name == "linear") return BatchRule::kLinear;
  if (name == "sqrt") return BatchRule::kSqrt;
  return absl::InvalidArgumentError(
      absl::StrCat("expected none, linear or sqrt, found '", name, "'"));
}

double BatchFactor(BatchRule rule, int64_t base, int64_t batch) {
  const double ratio = static_cast<double>(batch) / static_cast<double>(base);
  switch (rule) {
    case BatchRule::kNone:
      break;
    case BatchRule::kLinear:
      return ratio;
    case BatchRule::kSqrt:
      return std::sqrt(ratio);
  }
  return 1;
}

}  // namespace partita::train
