// Formats one line of text from a step's record.
#include "runtime/train/progress.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace partita::train {

std::string FormatShort(double value, const std::string& gap) {
  static constexpr const char* kUnits[] = {"", "k", "M", "G", "T", "P", "E"};
  size_t unit = 0;
  while (std::abs(value) >= 999.5 && unit + 1 < std::size(kUnits)) {
    value /= 1000;
    ++unit;
  }
  const int digits = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  if (unit == 0 && value == std::floor(value))
    return absl::StrFormat("%.0f%s", value, gap);
  return absl::StrFormat("%.*f%s%s", digits, value, gap, kUnits[unit]);
}

std::string FormatDuration(double seconds) {
  const auto whole = static_cast<int64_t>(std::llround(std::max(seconds, 0.0)));
  const int64_t minutes = whole / 60, hours = minutes / 60, days = hours / 24;
  if (days > 0) return absl::StrCat(days, " d ", hours % 24, " h");
  if (hours > 0) return absl::StrCat(hours, " h ", minutes % 60, " min");
  if (minutes > 0) return absl::StrCat(minutes, " min ", whole % 60, " s");
  return absl::StrCat(whole, " s");
}

Progress::~Progress() {
  if (open_) out_ << std::endl;
}

std::string Progress::Line(const StepRecord& record) const {
  std::string line = absl::StrFormat(
      "step %d/%d  loss %s  lr %.3g", record.step, options_.steps,
      std::isnan(record.loss) ? "-" : absl::StrFormat("%.4f", record.loss),
      record.rate);
  if (average_ <= 0) return line;
  const bool text = record.tokens > 0;
  absl::StrAppend(
      &line, "  ",
      FormatShort(static_cast<double>(text ? record.tokens : record.examples) /
                  average_),
      text ? " tokens/s" : " examples/s");
  if (options_.flops_per_step > 0) {
    const double speed = options_.flops_per_step / average_;
    absl::StrAppend(&line, "  ", FormatShort(speed, " "), "FLOP/s");
    if (options_.peak_flops > 0)
      absl::StrAppendFormat(&line, " (%.1f %% of peak)",
                            100 * speed / options_.peak_flops);
  }
  absl::StrAppend(
      &line, "  ",
      FormatDuration(static_cast<double>(options_.steps - record.step) *
                     average_),
      " left");
  return line;
}

absl::Status Progress::OnStep(const StepRecord& record) {
  ++seen_;
  average_ =
      seen_ <= 2 ? record.seconds : 0.9 * average_ + 0.1 * record.seconds;
  since_ += record.seconds;
  if (options_.terminal) {
    out_ << "\r" << Line(record) << "\x1b[K" << std::flush;
    open_ = true;
  } else if (seen_ == 1 || record.step >= options_.steps ||
             since_ >= options_.interval) {
    out_ << Line(record) << std::endl;
    since_ = 0;
  }
  return absl::OkStatus();
}

void Progress::Say(const std::string& text) {
  if (open_) out_ << "\r\x1b[K";
  out_ << text << std::endl;
  open_ = false;
}

}  // namespace partita::train
