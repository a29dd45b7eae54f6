// Formats tables and JSON.
#include "runtime/tools/run_report.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"
#include "runtime/base/quantity.h"
#include "runtime/program/target.h"
#include "runtime/tools/memory_json.h"

namespace partita::tools {
namespace {

constexpr int64_t kShown = 6;

struct Summary {
  double min = std::numeric_limits<double>::infinity();
  double max = -std::numeric_limits<double>::infinity();
  double mean = 0;
  int64_t not_finite = 0;
  std::vector<double> first;
};

// Minimum, maximum and mean are over the finite elements.
Summary Summarise(const HostTensor& tensor) {
  Summary summary;
  const executor::TensorSpec& spec = tensor.spec();
  const int64_t count = spec.bytes / base::SizeOf(spec.dtype);
  for (int64_t i = 0; i < count; ++i) {
    const double value = base::ElementAsDouble(spec.dtype, tensor.data(), i);
    if (i < kShown) summary.first.push_back(value);
    if (!std::isfinite(value)) {
      ++summary.not_finite;
      continue;
    }
    summary.min = std::min(summary.min, value);
    summary.max = std::max(summary.max, value);
    summary.mean += value;
  }
  if (count > summary.not_finite)
    summary.mean /= static_cast<double>(count - summary.not_finite);
  if (count == summary.not_finite)
    summary.min = summary.max = summary.mean =
        std::numeric_limits<double>::quiet_NaN();
  return summary;
}

std::string OutputTable(const std::vector<HostTensor>& outputs) {
  size_t name_width = 6;
  size_t type_width = 4;
  for (const HostTensor& output : outputs) {
    name_width = std::max(name_width, output.spec().name.size());
    type_width = std::max(
        type_width,
        base::TypeName(output.spec().dtype, output.spec().shape).size());
  }
  std::string text = absl::StrFormat("%-*s  %-*s  %12s  %12s  %12s  %s\n",
                                     name_width, "output", type_width, "type",
                                     "min", "max", "mean", "first values");
  for (const HostTensor& output : outputs) {
    const Summary summary = Summarise(output);
    text += absl::StrFormat(
        "%-*s  %-*s  %12.5g  %12.5g  %12.5g  ", name_width, output.spec().name,
        type_width, base::TypeName(output.spec().dtype, output.spec().shape),
        summary.min, summary.max, summary.mean);
    for (const double value : summary.first)
      absl::StrAppendFormat(&text, "%.5g ", value);
    if (summary.not_finite > 0)
      absl::StrAppendFormat(&text, " (%d not finite)", summary.not_finite);
    while (text.back() == ' ') text.pop_back();
    text += "\n";
  }
  return text;
}

}  // namespace

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle]
                                : 0.5 * (values[middle - 1] + values[middle]);
}

namespace {

// `where` is appended to the sum.
std::string MemoryText(const executor::MemoryUse& memory,
                       const std::string& where) {
  std::string text =
      absl::StrCat(base::FormatBytes(memory.Total()), where, ": arena ",
                   base::FormatBytes(memory.arena), ", weights ",
                   base::FormatBytes(memory.globals), ", packed weights ",
                   base::FormatBytes(memory.packed), ", scratch ",
                   base::FormatBytes(memory.scratch));
  if (memory.staging > 0)
    absl::StrAppend(&text, ", staging ", base::FormatBytes(memory.staging));
  absl::StrAppend(&text, "; mapped weights ", base::FormatBytes(memory.mapped));
  if (memory.files > 0)
    absl::StrAppend(&text, ", states in files ",
                    base::FormatBytes(memory.files), ", their buffers ",
                    base::FormatBytes(memory.host));
  else if (memory.host > 0)
    absl::StrAppend(&text, ", states on the host ",
                    base::FormatBytes(memory.host));
  return text;
}

// One line per pipeline place, with the numbers of its fullest device.
std::string PipelineTable(const std::vector<executor::RankUse>& ranks) {
  std::map<int, executor::RankUse> fullest;
  for (const executor::RankUse& rank : ranks) {
    const auto [known, is_new] = fullest.emplace(rank.entry, rank);
    if (!is_new && rank.memory.Total() > known->second.memory.Total())
      known->second = rank;
  }
  std::string text;
  for (const auto& [entry, rank] : fullest)
    absl::StrAppend(&text, "pipeline rank ", entry, ": ", rank.steps,
                    " steps, ", MemoryText(rank.memory, ""), "\n");
  return text;
}

// Pipeline rank of a profile: its index if this process has the profiles of all
// ranks, else that of the first rank.
int PipelineRankOf(const RunReport& report, size_t profile) {
  return report.profiles.size() > 1 ? static_cast<int>(profile)
                                    : report.ranks[0].entry;
}

// The share of one of the devices, which have equal shares of the machine.
std::optional<executor::MachineLimits> LimitsOfDevice(const RunReport& report) {
  if (!report.limits) return std::nullopt;
  executor::MachineLimits limits = *report.limits;
  limits.memory /= report.devices;
  for (auto& [type, flops] : limits.flops) flops /= report.devices;
  return limits;
}

// Explains the columns of limits, or their absence.
std::string LimitsText(const RunReport& report) {
  if (!report.limits)
    return "\n% of the machine's limits: unknown; run `partita measure` once, "
           "then `partita run` with --profile\n";
  return absl::StrCat(
      "\n% peak: share of the fastest products measured on this machine; % "
      "mem: bytes that operands have, as a share of its memory bandwidth, "
      "above 100% in caches",
      report.devices > 1
          ? absl::StrCat(". Each of the ", report.devices,
                         " devices has an equal share of the machine")
          : "",
      ".\n");
}

}  // namespace

std::string ToTables(const RunReport& report,
                     const std::vector<HostTensor>& outputs) {
  std::string text = OutputTable(outputs);
  absl::StrAppendFormat(
      &text,
      "\ntime    median %.3f ms, min %.3f ms over %d run%s (%d steps each); "
      "loading %.0f ms\n",
      Median(report.times_ms),
      *std::min_element(report.times_ms.begin(), report.times_ms.end()),
      report.times_ms.size(), report.times_ms.size() == 1 ? "" : "s",
      report.steps, report.load_ms);
  const std::string where = absl::StrCat(
      " on ", report.device,
      report.devices > 1 ? absl::StrCat(", the fullest of ", report.devices)
                         : "");
  absl::StrAppend(&text, "memory  ", MemoryText(report.memory, where),
                  "; peak of the process ",
                  base::FormatBytes(report.peak_process_bytes), "\n");
  for (const std::string& warning : report.warnings)
    absl::StrAppend(&text, "warning ", warning, "\n");
  text += PipelineTable(report.ranks);
  const std::optional<executor::MachineLimits> limits = LimitsOfDevice(report);
  for (size_t i = 0; i < report.profiles.size(); ++i) {
    if (!report.ranks.empty())
      absl::StrAppend(&text, "\npipeline rank ", PipelineRankOf(report, i));
    absl::StrAppend(&text, "\n",
                    report.profiles[i]->ToString(limits ? &*limits : nullptr));
  }
  if (!report.profiles.empty() && report.device == program::kCpuTarget)
    text += LimitsText(report);
  return text;
}

std::string ToJson(const RunReport& report,
                   const std::vector<HostTensor>& outputs) {
  using nlohmann::json;
  json object = {{"model", report.model},
                 {"device", report.device},
                 {"devices", report.devices},
                 {"load_ms", report.load_ms},
                 {"steps", report.steps},
                 {"median_ms", Median(report.times_ms)},
                 {"min_ms", *std::min_element(report.times_ms.begin(),
                                              report.times_ms.end())},
                 {"times_ms", report.times_ms},
                 {"cpu_ms", report.cpu_ms},
                 {"memory", MemoryJson(report.memory)},
                 {"outputs", json::array()}};
  object["memory"]["peak_process"] = report.peak_process_bytes;
  if (!report.warnings.empty()) object["warnings"] = report.warnings;
  if (!report.ranks.empty()) object["ranks"] = RanksJson(report.ranks);
  for (const HostTensor& output : outputs) {
    // Numbers that JSON cannot represent become null.
    const Summary summary = Summarise(output);
    object["outputs"].push_back({{"name", output.spec().name},
                                 {"dtype", base::NameOf(output.spec().dtype)},
                                 {"shape", output.spec().shape},
                                 {"min", summary.min},
                                 {"max", summary.max},
                                 {"mean", summary.mean},
                                 {"not_finite", summary.not_finite},
                                 {"first", summary.first}});
  }
  for (size_t i = 0; i < report.profiles.size(); ++i) {
    for (const executor::ProfileRow& row : report.profiles[i]->Rows()) {
      json line = {
          {"name", row.name},       {"calls", row.calls},
          {"ms", row.milliseconds}, {"median_ms", row.median_milliseconds},
          {"flops", row.flops},     {"bytes", row.bytes}};
      if (!report.ranks.empty())
        line["pipeline_rank"] = PipelineRankOf(report, i);
      object["profile"].push_back(std::move(line));
    }
    for (const executor::ProfileRow& row : report.profiles[i]->LayerRows()) {
      json line = {{"layer", row.name},
                   {"calls", row.calls},
                   {"ms", row.milliseconds},
                   {"median_ms", row.median_milliseconds}};
      if (!report.ranks.empty())
        line["pipeline_rank"] = PipelineRankOf(report, i);
      object["layers"].push_back(std::move(line));
    }
  }
  return object.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace partita::tools
