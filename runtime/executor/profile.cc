// Adds up times by label and prints them.
#include "runtime/executor/profile.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_format.h"

namespace partita::executor {

namespace {

double Median(std::vector<int64_t> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<int64_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  const auto high = static_cast<double>(*middle);
  if (values.size() % 2 == 1) return high;
  return 0.5 * (high +
                static_cast<double>(*std::max_element(values.begin(), middle)));
}

}  // namespace

Profile::Profile(std::vector<StepLabel> labels)
    : name_of_(labels.size()), nanoseconds_(labels.size(), 0) {
  std::map<std::string, size_t> numbers;
  for (size_t i = 0; i < labels.size(); ++i) {
    const StepLabel& label = labels[i];
    const auto [found, is_new] = numbers.emplace(label.name, names_.size());
    if (is_new) names_.emplace_back().name = label.name;
    name_of_[i] = found->second;
    ProfileRow& row = names_[found->second];
    row.calls += 1;
    row.flops += label.flops;
    row.bytes += label.bytes;
  }
  Reset();
}

void Profile::Reset() {
  std::fill(nanoseconds_.begin(), nanoseconds_.end(), 0);
  runs_.assign(names_.size(), {});
}

void Profile::CountRun() {
  std::vector<int64_t> sums(names_.size(), 0);
  for (size_t i = 0; i < nanoseconds_.size(); ++i)
    sums[name_of_[i]] += std::exchange(nanoseconds_[i], 0);
  for (size_t i = 0; i < sums.size(); ++i) runs_[i].push_back(sums[i]);
}

std::vector<ProfileRow> Profile::Rows() const {
  std::vector<ProfileRow> rows = names_;
  for (size_t i = 0; i < rows.size() && !runs_[i].empty(); ++i) {
    double sum = 0;
    for (const int64_t time : runs_[i]) sum += static_cast<double>(time);
    rows[i].milliseconds = 1e-6 * sum / static_cast<double>(runs_[i].size());
    rows[i].median_milliseconds = 1e-6 * Median(runs_[i]);
  }
  std::sort(rows.begin(), rows.end(),
            [](const ProfileRow& a, const ProfileRow& b) {
              return a.milliseconds > b.milliseconds;
            });
  return rows;
}

std::string Profile::ToString() const {
  const std::vector<ProfileRow> rows = Rows();
  double total = 0;
  size_t width = 4;
  for (const ProfileRow& row : rows) {
    total += row.milliseconds;
    width = std::max(width, row.name.size());
  }
  std::string text =
      absl::StrFormat("%-*s  %7s  %9s  %6s  %8s  %7s\n", width, "step", "calls",
                      "ms", "share", "GFLOP/s", "GB/s");
  for (const ProfileRow& row : rows) {
    const double seconds = std::max(row.milliseconds, 1e-6) * 1e-3;
    text += absl::StrFormat(
        "%-*s  %7d  %9.3f  %5.1f%%  %8s  %7.1f\n", width, row.name, row.calls,
        row.milliseconds, total > 0 ? 100 * row.milliseconds / total : 0,
        row.flops > 0 ? absl::StrFormat("%.1f", row.flops / seconds * 1e-9)
                      : "",
        row.bytes / seconds * 1e-9);
  }
  return text +
         absl::StrFormat("%-*s  %7s  %9.3f\n", width, "total", "", total);
}

}  // namespace partita::executor
