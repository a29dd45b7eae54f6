// Adds up times by name and by layer, and prints them.
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

std::vector<std::string> NamesOf(const std::vector<StepLabel>& labels) {
  std::vector<std::string> names;
  for (const StepLabel& label : labels) names.push_back(label.name);
  return names;
}

std::vector<std::string> LayersOf(const std::vector<StepLabel>& labels) {
  std::vector<std::string> layers;
  for (const StepLabel& label : labels) layers.push_back(LayerOf(label.layer));
  return layers;
}

bool IsNumber(const std::string& word) {
  return !word.empty() &&
         word.find_first_not_of("0123456789") == std::string::npos;
}

double TotalOf(const std::vector<ProfileRow>& rows) {
  double total = 0;
  for (const ProfileRow& row : rows) total += row.milliseconds;
  return total;
}

double Percent(double part, double whole) {
  return whole > 0 ? 100 * part / whole : 0;
}

size_t WidthOf(const std::vector<ProfileRow>& rows, size_t least) {
  size_t width = least;
  for (const ProfileRow& row : rows) width = std::max(width, row.name.size());
  return width;
}

// A share of a limit, right-aligned in `width`; blank if one is unknown.
std::string ShareOfLimit(double speed, double limit, int width) {
  if (speed <= 0 || limit <= 0)
    return std::string(static_cast<size_t>(width), ' ');
  return absl::StrFormat("%*.0f%%", width - 1, 100 * speed / limit);
}

std::string LimitColumns(const ProfileRow& row, double seconds,
                         const MachineLimits& limits) {
  const auto peak = limits.flops.find(row.precision);
  return "  " +
         ShareOfLimit(row.flops / seconds,
                      peak == limits.flops.end() ? 0 : peak->second, 6) +
         "  " + ShareOfLimit(row.bytes / seconds, limits.memory, 6);
}

std::string NameTable(const std::vector<ProfileRow>& rows,
                      const MachineLimits* limits) {
  const double total = TotalOf(rows);
  const size_t width = WidthOf(rows, 4);
  std::string text = absl::StrFormat(
      "%-*s  %7s  %9s  %6s  %8s  %7s%s\n", width, "step", "calls", "ms",
      "share", "GFLOP/s", "GB/s", limits == nullptr ? "" : "  % peak   % mem");
  for (const ProfileRow& row : rows) {
    const double seconds = std::max(row.milliseconds, 1e-6) * 1e-3;
    std::string line = absl::StrFormat(
        "%-*s  %7d  %9.3f  %5.1f%%  %8s  %7.1f%s", width, row.name, row.calls,
        row.milliseconds, Percent(row.milliseconds, total),
        row.flops > 0 ? absl::StrFormat("%.1f", row.flops / seconds * 1e-9)
                      : "",
        row.bytes / seconds * 1e-9,
        limits == nullptr ? "" : LimitColumns(row, seconds, *limits));
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text +
         absl::StrFormat("%-*s  %7s  %9.3f\n", width, "total", "", total);
}

// Empty if no layer is known.
std::string LayerTable(std::vector<ProfileRow> rows) {
  if (rows.size() == 1 && rows[0].name.empty()) return "";
  for (ProfileRow& row : rows)
    if (row.name.empty()) row.name = "(no layer)";
  const double total = TotalOf(rows);
  const size_t width = WidthOf(rows, 5);
  std::string text = absl::StrFormat("\n%-*s  %7s  %9s  %6s\n", width, "layer",
                                     "calls", "ms", "share");
  for (const ProfileRow& row : rows)
    text += absl::StrFormat("%-*s  %7d  %9.3f  %5.1f%%\n", width, row.name,
                            row.calls, row.milliseconds,
                            Percent(row.milliseconds, total));
  return text;
}

}  // namespace

std::string LayerOf(const std::string& path) {
  size_t end = std::string::npos;  // behind the last number taken
  int since = 0;                   // words since then
  for (size_t begin = 0; begin <= path.size();) {
    const size_t dot = std::min(path.find('.', begin), path.size());
    if (IsNumber(path.substr(begin, dot - begin))) {
      const bool second = end != std::string::npos;
      end = dot;
      since = 0;
      if (second) break;
    } else if (end != std::string::npos && ++since > 1) {
      break;
    }
    begin = dot + 1;
  }
  return path.substr(0, end);
}

StepTotals::StepTotals(const std::vector<StepLabel>& labels,
                       const std::vector<std::string>& groups) {
  std::map<std::string, size_t> numbers;
  for (size_t i = 0; i < labels.size(); ++i) {
    const auto [found, is_new] = numbers.emplace(groups[i], groups_.size());
    if (is_new) {
      groups_.emplace_back().name = groups[i];
      groups_.back().precision = labels[i].precision;
    }
    group_of_.push_back(found->second);
    ProfileRow& row = groups_[found->second];
    row.calls += 1;
    row.flops += labels[i].flops;
    row.bytes += labels[i].bytes;
  }
  Reset();
}

void StepTotals::Reset() { runs_.assign(groups_.size(), {}); }

void StepTotals::CountRun(const std::vector<int64_t>& nanoseconds) {
  std::vector<int64_t> sums(groups_.size(), 0);
  for (size_t i = 0; i < nanoseconds.size(); ++i)
    sums[group_of_[i]] += nanoseconds[i];
  for (size_t i = 0; i < sums.size(); ++i) runs_[i].push_back(sums[i]);
}

std::vector<ProfileRow> StepTotals::Rows() const {
  std::vector<ProfileRow> rows = groups_;
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

Profile::Profile(const std::vector<StepLabel>& labels)
    : nanoseconds_(labels.size(), 0),
      by_name_(labels, NamesOf(labels)),
      by_layer_(labels, LayersOf(labels)) {}

void Profile::Reset() {
  std::fill(nanoseconds_.begin(), nanoseconds_.end(), 0);
  by_name_.Reset();
  by_layer_.Reset();
}

void Profile::CountRun() {
  by_name_.CountRun(nanoseconds_);
  by_layer_.CountRun(nanoseconds_);
  std::fill(nanoseconds_.begin(), nanoseconds_.end(), 0);
}

std::string Profile::ToString(const MachineLimits* limits) const {
  return NameTable(Rows(), limits) + LayerTable(LayerRows());
}

}  // namespace partita::executor
