// Implements the formulas of the header.
#include "runtime/train/schedule.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"

namespace partita::train {

namespace {

using Kind = Schedule::Kind;

constexpr std::pair<const char*, Kind> kKinds[] = {
    {"constant", Kind::kConstant},
    {"linear", Kind::kLinear},
    {"cosine", Kind::kCosine},
    {"inverse_sqrt", Kind::kInverseSqrt},
    {"one_cycle", Kind::kOneCycle},
    {"one_cycle_linear", Kind::kOneCycleLinear},
    {"range_test", Kind::kRangeTest},
    {"range_test_linear", Kind::kRangeTestLinear}};

// The share of the rate at the beginning.
double FirstOf(const Schedule& schedule) {
  if (schedule.first > 0) return schedule.first;
  return IsOneCycle(schedule.kind) ? 1.0 / 25 : 1e-6;
}

// `s` is a step of at least 1.
double OneCycle(const Schedule& schedule, double s) {
  const double steps = static_cast<double>(schedule.steps);
  const double peak =
      schedule.warmup > 0 ? static_cast<double>(schedule.warmup) : 0.3 * steps;
  const bool rises = s <= peak;
  const double low = rises ? FirstOf(schedule) : schedule.minimum;
  double p = rises ? (peak > 1 ? (s - 1) / (peak - 1) : 1)
                   : (steps > peak ? (steps - s) / (steps - peak) : 0);
  p = std::min(std::max(p, 0.0), 1.0);
  if (schedule.kind == Kind::kOneCycle) p = 0.5 * (1 - std::cos(M_PI * p));
  return low + (1 - low) * p;
}

double RangeTest(const Schedule& schedule, double s) {
  const double a = FirstOf(schedule);
  const double last = static_cast<double>(schedule.steps) - 1;
  const double p = last > 0 ? std::min((s - 1) / last, 1.0) : 1;
  return schedule.kind == Kind::kRangeTest ? std::pow(a, 1 - p)
                                           : a + (1 - a) * p;
}

}  // namespace

bool IsOneCycle(Schedule::Kind kind) {
  return kind == Kind::kOneCycle || kind == Kind::kOneCycleLinear;
}

bool IsRangeTest(Schedule::Kind kind) {
  return kind == Kind::kRangeTest || kind == Kind::kRangeTestLinear;
}

bool HasMinimum(Schedule::Kind kind) {
  return kind != Kind::kConstant && !IsRangeTest(kind);
}

std::string ScheduleName(Schedule::Kind kind) {
  for (const auto& [name, other] : kKinds)
    if (other == kind) return name;
  return "";
}

absl::StatusOr<Schedule::Kind> ParseScheduleKind(const std::string& name) {
  std::string known;
  for (const auto& [text, kind] : kKinds) {
    if (name == text) return kind;
    absl::StrAppend(&known,
                    known.empty()                         ? ""
                    : kind == std::rbegin(kKinds)->second ? " or "
                                                          : ", ",
                    text);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("expected ", known, ", found '", name, "'"));
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
  if (!(schedule.first >= 0 && schedule.first <= 1))
    return wrong("expected a share of the learning rate from 0 to 1, found ",
                 schedule.first);
  if (IsRangeTest(schedule.kind) && schedule.warmup > 0)
    return wrong(
        "expected none with a range test, whose rates rise anyway, "
        "found ",
        schedule.warmup);
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
  if (IsOneCycle(schedule.kind)) return schedule.rate * OneCycle(schedule, s);
  if (IsRangeTest(schedule.kind)) return schedule.rate * RangeTest(schedule, s);
  if (step <= schedule.warmup) return schedule.rate * s / w;
  const double rest = static_cast<double>(
      std::max<int64_t>(schedule.steps - schedule.warmup, 1));
  const double p = std::min((s - 1 - w) / rest, 1.0);
  switch (schedule.kind) {
    default:
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
