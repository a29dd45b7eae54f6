// Reads the rows of a profile by their names.
#include "compiler/measure/profile_times.h"

#include "nlohmann/json.hpp"

namespace partita::measure {

using nlohmann::json;

absl::StatusOr<ProfileTimes> ProfileTimes::Parse(const std::string& text) {
  const auto wrong = [] {
    return absl::DataLossError(
        "expected the report of partita-run --profile --json, found something "
        "else");
  };
  const json report = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!report.is_object() || !report.contains("profile") ||
      !report["profile"].is_array())
    return wrong();
  ProfileTimes times;
  for (const json& row : report["profile"]) {
    if (!row.is_object() || !row.contains("name") || !row["name"].is_string() ||
        !row.contains("median_ms") || !row["median_ms"].is_number() ||
        !row.contains("calls") || !row["calls"].is_number_integer())
      return wrong();
    const double calls = row["calls"].get<double>();
    if (calls >= 1)
      times.seconds_[row["name"].get<std::string>()] =
          1e-3 * row["median_ms"].get<double>() / calls;
  }
  return times;
}

absl::StatusOr<double> ProfileTimes::Seconds(const std::string& label) const {
  const auto is_called = [&](const std::string& name) {
    return name == label || name.rfind(label + " (", 0) == 0 ||
           name.rfind(label + " over ", 0) == 0;
  };
  for (auto row = seconds_.lower_bound(label);
       row != seconds_.end() && row->first.rfind(label, 0) == 0; ++row)
    if (is_called(row->first)) return row->second;
  return absl::InternalError("expected '" + label +
                             "' in the profile of a probe, found none");
}

}  // namespace partita::measure
