// Averages both numbers as they come.
#include "runtime/train/noise_scale.h"

#include <cmath>

namespace partita::train {
namespace {

constexpr double kPast = 0.99;

std::optional<double> Find(const StepRecord& record, const char* wanted) {
  for (const auto& [name, value] : record.scalars)
    if (name == wanted && std::isfinite(value)) return value;
  return std::nullopt;
}

}  // namespace

absl::Status NoiseScale::OnStep(const StepRecord& record) {
  const std::optional<double> noise = Find(record, "gradient_noise"),
                              signal = Find(record, "gradient_signal");
  if (!noise || !signal) return absl::OkStatus();
  noise_ = kPast * noise_ + (1 - kPast) * *noise;
  signal_ = kPast * signal_ + (1 - kPast) * *signal;
  examples_ = record.examples;
  ++steps_;
  return absl::OkStatus();
}

// Both averages have the same bias of the beginning, which their ratio lacks.
std::optional<double> NoiseScale::Examples() const {
  if (steps_ == 0 || noise_ <= 0 || signal_ <= 0) return std::nullopt;
  return static_cast<double>(examples_) * noise_ / signal_;
}

}  // namespace partita::train
