// Loads a model, runs it, and reports.
#include "runtime/tools/run_command.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/npy.h"
#include "runtime/base/status_macros.h"
#include "runtime/cpu/cpu_device.h"
#include "runtime/device/null_device.h"
#include "runtime/executor/executor.h"
#include "runtime/tools/host_tensor.h"
#include "runtime/tools/run_options.h"
#include "runtime/tools/run_report.h"

namespace partita::tools {
namespace {

using Clock = std::chrono::steady_clock;

double MillisecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin)
      .count();
}

int64_t PeakProcessBytes() {
  struct rusage usage;
  return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_maxrss * int64_t{1024}
                                             : 0;
}

absl::StatusOr<std::unique_ptr<device::Device>> MakeDevice(
    const RunOptions& options) {
  if (options.device == "null")
    return std::unique_ptr<device::Device>(
        std::make_unique<device::NullDevice>());
  return cpu::MakeCpuDevice({options.threads});
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

// Names of outputs may hold what file names may not.
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

absl::Status RunModel(executor::Executor& executor, const RunOptions& options,
                      const std::vector<HostTensor>& inputs,
                      const std::vector<HostTensor>& outputs,
                      std::vector<double>& times_ms) {
  std::vector<executor::ConstTensor> input_views;
  for (const HostTensor& input : inputs) input_views.push_back(input.View());
  std::vector<executor::MutableTensor> output_views;
  for (const HostTensor& output : outputs)
    output_views.push_back(output.MutableView());
  const int warmup = options.warmup.value_or(options.repeat > 1 ? 1 : 0);
  for (int i = 0; i < warmup; ++i)
    PARTITA_RETURN_IF_ERROR(executor.Run(input_views, output_views));
  if (options.profile) executor.EnableProfile();
  for (int i = 0; i < options.repeat; ++i) {
    const Clock::time_point begin = Clock::now();
    PARTITA_RETURN_IF_ERROR(executor.Run(input_views, output_views));
    times_ms.push_back(MillisecondsSince(begin));
  }
  return absl::OkStatus();
}

absl::Status Run(const RunOptions& options, std::ostream& out) {
  PARTITA_ASSIGN_OR_RETURN(const std::unique_ptr<device::Device> device,
                           MakeDevice(options));
  RunReport report;
  report.model = options.model;
  report.device = device->Name();
  const Clock::time_point begin = Clock::now();
  PARTITA_ASSIGN_OR_RETURN(
      const std::unique_ptr<executor::Executor> executor,
      executor::Executor::Load(options.model, *device, {options.weights_dir}));
  report.load_ms = MillisecondsSince(begin);
  const InputSources sources = {options.inputs, options.inputs_file,
                                options.random_seed.has_value(),
                                options.random_seed.value_or(0)};
  PARTITA_ASSIGN_OR_RETURN(const std::vector<HostTensor> inputs,
                           MakeInputs(executor->inputs(), sources));
  PARTITA_ASSIGN_OR_RETURN(const std::vector<HostTensor> outputs,
                           MakeOutputs(executor->outputs()));
  PARTITA_RETURN_IF_ERROR(
      RunModel(*executor, options, inputs, outputs, report.times_ms));
  PARTITA_RETURN_IF_ERROR(WriteOutputs(options.output_dir, outputs));
  report.steps = executor->step_count();
  report.memory = executor->Memory();
  report.peak_process_bytes = PeakProcessBytes();
  if (executor->profile() != nullptr) {
    report.profile = executor->profile()->Rows();
    report.profile_table = executor->profile()->ToString();
  }
  out << (options.json ? ToJson(report, outputs) : ToTables(report, outputs));
  return absl::OkStatus();
}

}  // namespace

int RunCommand(const std::vector<std::string>& arguments, std::ostream& out,
               std::ostream& error) {
  const absl::StatusOr<RunOptions> options = ParseRunOptions(arguments);
  if (!options.ok()) {
    error << "partita-run: " << options.status().message()
          << "\nTry partita-run --help.\n";
    return 2;
  }
  absl::Status status;
  if (options->help)
    out << RunHelp();
  else
    status = Run(*options, out);
  if (status.ok() && !out.flush().good())
    status =
        absl::UnavailableError("cannot write the results to standard output");
  if (status.ok()) return 0;
  error << "partita-run: " << status.message() << "\n";
  return absl::IsInternal(status) ? 70 : 1;
}

}  // namespace partita::tools
