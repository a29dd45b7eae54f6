// Sums times by label and prints them.
#include "runtime/executor/profile.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_format.h"

namespace partita::executor {

Profile::Profile(std::vector<StepLabel> labels)
    : labels_(std::move(labels)), nanoseconds_(labels_.size(), 0) {}

void Profile::Reset() {
  std::fill(nanoseconds_.begin(), nanoseconds_.end(), 0);
  runs_ = 0;
}

std::vector<ProfileRow> Profile::Rows() const {
  std::map<std::string, ProfileRow> by_name;
  for (size_t i = 0; i < labels_.size(); ++i) {
    ProfileRow& row = by_name[labels_[i].name];
    row.name = labels_[i].name;
    row.calls += 1;
    row.milliseconds += static_cast<double>(nanoseconds_[i]) * 1e-6 /
                        static_cast<double>(std::max<int64_t>(runs_, 1));
    row.flops += labels_[i].flops;
    row.bytes += labels_[i].bytes;
  }
  std::vector<ProfileRow> rows;
  for (auto& entry : by_name) rows.push_back(std::move(entry.second));
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
