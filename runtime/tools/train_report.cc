// Formats the training report, losses first.
#include "runtime/tools/train_report.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"
#include "runtime/base/quantity.h"
#include "runtime/tools/memory_json.h"
#include "runtime/train/progress.h"

namespace partita::tools {
namespace {

constexpr int64_t kRows = 12;

double PerSecond(const TrainReport& report, double per_step) {
  const double steps = static_cast<double>(report.result.losses.size());
  return report.result.seconds > 0 ? per_step * steps / report.result.seconds
                                   : 0;
}

std::string LossTable(const TrainReport& report) {
  const std::vector<double>& losses = report.result.losses;
  std::string text = "step      loss\n";
  const auto count = static_cast<int64_t>(losses.size());
  const int64_t rows = std::min(count, kRows);
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t index = rows == 1 ? 0 : row * (count - 1) / (rows - 1);
    const double loss = losses[static_cast<size_t>(index)];
    absl::StrAppendFormat(
        &text, "%-8d  %s\n", report.first_step + index,
        std::isnan(loss) ? "-" : absl::StrFormat("%.6g", loss));
  }
  return text + "\n";
}

const char* NameOf(train::TrainResult::End end) {
  switch (end) {
    case train::TrainResult::End::kSteps:
      return "steps";
    case train::TrainResult::End::kStopped:
      return "stopped";
    case train::TrainResult::End::kData:
      break;
  }
  return "data";
}

}  // namespace

std::string ToTables(const TrainReport& report) {
  const train::TrainResult& result = report.result;
  if (result.losses.empty())
    return absl::StrCat("nothing to do: the run has ", report.steps,
                        " steps, and its checkpoint is of step ",
                        result.last_step, "\n");
  std::string text = LossTable(report);
  absl::StrAppendFormat(
      &text, "time    %d steps in %s, %.3f ms each", result.losses.size(),
      result.seconds < 10 ? absl::StrFormat("%.2f s", result.seconds)
                          : train::FormatDuration(result.seconds),
      1000 * result.seconds / static_cast<double>(result.losses.size()));
  const auto add = [&](double per_step, const char* gap, const char* unit) {
    if (per_step > 0)
      absl::StrAppend(&text, ", ",
                      train::FormatShort(PerSecond(report, per_step), gap),
                      unit);
  };
  add(static_cast<double>(report.examples), "", " examples/s");
  add(static_cast<double>(report.tokens), "", " tokens/s");
  add(report.flops_per_step, " ", "FLOP/s");
  const executor::MemoryUse& memory = report.memory;
  absl::StrAppend(
      &text, "\nmemory  ", base::FormatBytes(memory.Total()),
      report.devices > 1
          ? absl::StrCat(", the fullest of ", report.devices, " devices")
          : "",
      ": arena ", base::FormatBytes(memory.arena), ", weights and states ",
      base::FormatBytes(memory.globals), ", scratch ",
      base::FormatBytes(memory.scratch),
      memory.files > 0
          ? absl::StrCat("; states in files ", base::FormatBytes(memory.files),
                         ", their buffers ", base::FormatBytes(memory.host))
      : memory.host > 0 ? absl::StrCat("; states on the host ",
                                       base::FormatBytes(memory.host))
                        : "",
      "; peak of the process ", base::FormatBytes(report.peak_process_bytes),
      "\n");
  for (const std::string& warning : report.warnings)
    absl::StrAppend(&text, "warning ", warning, "\n");
  if (report.measures_noise)
    absl::StrAppend(
        &text, "noise   ",
        report.noise_scale
            ? absl::StrCat("gradient noise scale ",
                           train::FormatShort(*report.noise_scale),
                           " examples, the critical batch size; this batch "
                           "has ",
                           report.examples)
            : "the gradient noise scale is not known yet: noise hides the "
              "gradient so far",
        "\n");
  if (report.is_range_test)
    absl::StrAppend(
        &text, "rate    ",
        report.suggested_rate
            ? absl::StrCat(
                  absl::StrFormat("%.3g", *report.suggested_rate),
                  ", where the loss fell fastest",
                  report.diverged ? "; the loss diverged in the end" : "")
        : report.diverged
            ? "none is suggested, as the loss diverged in the first steps; "
              "lower --lr or --first-lr"
            : "none is suggested, as the range test had too few steps",
        "\n");
  if (result.end == train::TrainResult::End::kSteps || report.diverged)
    return text;
  absl::StrAppend(
      &text, "ended   after step ", result.last_step, " of ", report.steps,
      result.end == train::TrainResult::End::kData
          ? ", with the data"
          : absl::StrCat(" by ", report.signal.empty() ? "another process"
                                                       : report.signal),
      report.checkpoint_dir.empty()
          ? "; nothing was saved"
          : absl::StrCat("; saved in ", report.checkpoint_dir,
                         ", --resume continues from there"),
      "\n");
  return text;
}

std::string ToJson(const TrainReport& report) {
  using nlohmann::json;
  const train::TrainResult& result = report.result;
  json object = {{"model", report.model},
                 {"devices", report.devices},
                 {"first_step", report.first_step},
                 {"last_step", result.last_step},
                 {"steps", report.steps},
                 {"end", report.diverged ? "diverged" : NameOf(result.end)},
                 {"losses", result.losses},
                 {"seconds", result.seconds},
                 {"flops_per_step", report.flops_per_step},
                 {"memory", MemoryJson(report.memory)}};
  object["memory"]["peak_process"] = report.peak_process_bytes;
  if (!report.warnings.empty()) object["warnings"] = report.warnings;
  if (!report.ranks.empty()) object["ranks"] = RanksJson(report.ranks);
  const auto add = [&](const char* name, int64_t per_step) {
    if (per_step > 0)
      object[name] = PerSecond(report, static_cast<double>(per_step));
  };
  add("examples_per_second", report.examples);
  add("tokens_per_second", report.tokens);
  if (report.noise_scale) object["noise_scale_examples"] = *report.noise_scale;
  if (report.suggested_rate) object["suggested_rate"] = *report.suggested_rate;
  if (!report.signal.empty()) object["signal"] = report.signal;
  if (!report.checkpoint_dir.empty())
    object["checkpoint_dir"] = report.checkpoint_dir;
  return object.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace partita::tools
