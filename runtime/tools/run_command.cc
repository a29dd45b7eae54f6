// Loads a model, runs it, and reports.
#include "runtime/tools/run_command.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/npy.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/version.h"
#include "runtime/data/check_indices.h"
#include "runtime/executor/executor.h"
#include "runtime/session/make_device.h"
#include "runtime/session/open_ranks.h"
#include "runtime/tools/generate_command.h"
#include "runtime/tools/host_tensor.h"
#include "runtime/tools/run_options.h"
#include "runtime/tools/run_ranks.h"
#include "runtime/tools/run_report.h"
#include "runtime/tools/train_command.h"

namespace partita::tools {
namespace {

using Clock = std::chrono::steady_clock;
using executor::RankGroup;

double MillisecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin)
      .count();
}

absl::StatusOr<std::vector<HostTensor>> MakeOutputs(
    const std::vector<executor::TensorSpec>& specs) {
  std::vector<HostTensor> outputs;
  for (const executor::TensorSpec& spec : specs) {
    PARTITA_ASSIGN_OR_RETURN(HostTensor output, HostTensor::Make(spec));
    outputs.push_back(std::move(output));
  }
  return outputs;
}

// Names of outputs may contain characters that file names may not.
std::string FileName(const std::string& name) {
  std::string file = name;
  std::replace(file.begin(), file.end(), '/', '_');
  if (file.empty() || file[0] == '.') file.insert(0, "_");
  return file + ".npy";
}

absl::Status WriteOutputs(const std::string& folder,
                          const std::vector<HostTensor>& outputs) {
  if (folder.empty()) return absl::OkStatus();
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    return absl::InvalidArgumentError(
        absl::StrCat(folder, ": cannot create the folder: ", error.message()));
  for (const HostTensor& output : outputs) {
    const executor::TensorSpec& spec = output.spec();
    PARTITA_RETURN_IF_ERROR(
        base::WriteNpy(absl::StrCat(folder, "/", FileName(spec.name)),
                       spec.dtype, spec.shape, output.data()));
  }
  return absl::OkStatus();
}

absl::Status RunModel(RankGroup& ranks, const RunOptions& options,
                      const std::vector<HostTensor>& inputs,
                      const std::vector<HostTensor>& outputs,
                      RunReport& report) {
  std::vector<executor::ConstTensor> input_views;
  for (const HostTensor& input : inputs) input_views.push_back(input.View());
  std::vector<executor::MutableTensor> output_views;
  for (const HostTensor& output : outputs)
    output_views.push_back(output.MutableView());
  if (!ranks.IsMain()) {
    for (const executor::TensorSpec& spec : ranks.outputs())
      output_views.push_back({spec.dtype, spec.shape, nullptr});
  }
  const int warmup = options.warmup.value_or(options.repeat > 1 ? 1 : 0);
  for (int i = 0; i < warmup; ++i)
    PARTITA_RETURN_IF_ERROR(ranks.Run(input_views, output_views));
  if (options.profile) ranks.EnableProfile();
  const std::clock_t cpu = std::clock();
  for (int i = 0; i < options.repeat; ++i) {
    PARTITA_RETURN_IF_ERROR(ranks.Align());
    const Clock::time_point begin = Clock::now();
    PARTITA_RETURN_IF_ERROR(ranks.Run(input_views, output_views));
    report.times_ms.push_back(MillisecondsSince(begin));
  }
  report.cpu_ms = 1e3 * static_cast<double>(std::clock() - cpu) /
                  CLOCKS_PER_SEC / options.repeat;
  return ranks.Complete(output_views, report.times_ms);
}

absl::Status Report(RankGroup& ranks, const RunOptions& options,
                    const std::vector<HostTensor>& outputs, RunReport& report,
                    std::ostream& out) {
  PARTITA_ASSIGN_OR_RETURN(std::vector<executor::RankUse> uses, ranks.Uses());
  PARTITA_ASSIGN_OR_RETURN(report.warnings, ranks.Warnings());
  if (!ranks.IsMain()) return absl::OkStatus();
  PARTITA_RETURN_IF_ERROR(WriteOutputs(options.output_dir, outputs));
  report.steps = ranks.step_count();
  report.devices = ranks.devices();
  report.memory = executor::FullestOf(uses);
  if (ranks.program().entries()->size() > 1) report.ranks = std::move(uses);
  report.peak_process_bytes = PeakProcessBytes();
  report.profiles = ranks.profiles();
  report.limits = options.limits;
  out << (options.json ? ToJson(report, outputs) : ToTables(report, outputs));
  return Flush(out);
}

absl::Status CheckIndices(const RankGroup& ranks,
                          const std::vector<HostTensor>& inputs) {
  for (const HostTensor& input : inputs)
    PARTITA_RETURN_IF_ERROR(data::CheckIndices(
        input.spec(), input.data(), ranks.LimitOf(input.spec().name)));
  return absl::OkStatus();
}

// `begin`: start of loading.
absl::Status RunLoaded(RankGroup& ranks, const RunOptions& options,
                       Clock::time_point begin, std::ostream& out) {
  RunReport report;
  report.model = options.model;
  PARTITA_ASSIGN_OR_RETURN(const device::DeviceKind* const kind,
                           session::DeviceOf(options, ranks.program()));
  report.device = kind->name;
  report.load_ms = MillisecondsSince(begin);
  const InputSources sources = {options.inputs, options.inputs_file,
                                options.random_seed.has_value(),
                                options.random_seed.value_or(0)};
  absl::StatusOr<std::vector<HostTensor>> inputs =
      MakeInputs(ranks.inputs(), sources);
  absl::StatusOr<std::vector<HostTensor>> outputs = MakeOutputs(
      ranks.IsMain() ? ranks.outputs() : std::vector<executor::TensorSpec>());
  PARTITA_RETURN_IF_ERROR(
      ranks.Agree(inputs.ok() ? outputs.status() : inputs.status()));
  PARTITA_RETURN_IF_ERROR(ranks.Agree(CheckIndices(ranks, *inputs)));
  PARTITA_RETURN_IF_ERROR(RunModel(ranks, options, *inputs, *outputs, report));
  return ranks.Agree(Report(ranks, options, *outputs, report, out));
}

}  // namespace

int RunCommand(const std::vector<std::string>& arguments, std::ostream& out,
               std::ostream& error) {
  if (!arguments.empty() && arguments[0] == "train")
    return TrainCommand({arguments.begin() + 1, arguments.end()}, out, error);
  if (!arguments.empty() && arguments[0] == "generate")
    return GenerateCommand({arguments.begin() + 1, arguments.end()}, out,
                           error);
  const bool has_word = !arguments.empty() && arguments[0] == "run";
  const absl::StatusOr<RunOptions> options = ParseRunOptions(
      {arguments.begin() + (has_word ? 1 : 0), arguments.end()});
  if (!options.ok()) {
    if (Speaks()) {
      error << "partita-run: " << options.status().message()
            << "\nTry partita-run --help.\n";
    }
    return 2;
  }
  if (options->help) {
    if (Speaks()) out << RunHelp();
    return Tell(Flush(out), error);
  }
  if (options->version) {
    if (Speaks()) out << "partita-run " << base::kVersion << "\n";
    return Tell(Flush(out), error);
  }
  const Clock::time_point begin = Clock::now();
  return RunWithRanks(
      *options,
      [&](RankGroup& ranks) { return RunLoaded(ranks, *options, begin, out); },
      error);
}

}  // namespace partita::tools
