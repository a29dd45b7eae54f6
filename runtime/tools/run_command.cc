// Loads a model, runs it, and reports.
#include "runtime/tools/run_command.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/npy.h"
#include "runtime/base/status_macros.h"
#include "runtime/comm/launch.h"
#include "runtime/comm/mpi_world.h"
#include "runtime/executor/executor.h"
#include "runtime/tools/host_tensor.h"
#include "runtime/tools/run_options.h"
#include "runtime/tools/run_report.h"
#include "runtime/tools/session.h"

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

absl::Status RunModel(Session& session, const RunOptions& options,
                      const std::vector<HostTensor>& inputs,
                      const std::vector<HostTensor>& outputs,
                      std::vector<double>& times_ms) {
  std::vector<executor::ConstTensor> input_views;
  for (const HostTensor& input : inputs) input_views.push_back(input.View());
  std::vector<executor::MutableTensor> output_views;
  for (const HostTensor& output : outputs)
    output_views.push_back(output.MutableView());
  if (!session.IsMain()) {
    for (const executor::TensorSpec& spec : session.outputs())
      output_views.push_back({spec.dtype, spec.shape, nullptr});
  }
  const int warmup = options.warmup.value_or(options.repeat > 1 ? 1 : 0);
  for (int i = 0; i < warmup; ++i)
    PARTITA_RETURN_IF_ERROR(session.Run(input_views, output_views));
  if (options.profile) session.EnableProfile();
  for (int i = 0; i < options.repeat; ++i) {
    PARTITA_RETURN_IF_ERROR(session.Align());
    const Clock::time_point begin = Clock::now();
    PARTITA_RETURN_IF_ERROR(session.Run(input_views, output_views));
    times_ms.push_back(MillisecondsSince(begin));
  }
  return session.Complete(output_views, times_ms);
}

absl::Status Flush(std::ostream& out) {
  return out.flush().good()
             ? absl::OkStatus()
             : absl::UnavailableError(
                   "cannot write the results to standard output");
}

absl::Status Report(Session& session, const RunOptions& options,
                    const std::vector<HostTensor>& outputs, RunReport& report,
                    std::ostream& out) {
  if (!session.IsMain()) return absl::OkStatus();
  PARTITA_RETURN_IF_ERROR(WriteOutputs(options.output_dir, outputs));
  report.steps = session.step_count();
  report.devices = session.devices();
  report.memory = session.Memory();
  report.peak_process_bytes = PeakProcessBytes();
  if (session.profile() != nullptr) {
    report.profile = session.profile()->Rows();
    report.profile_table = session.profile()->ToString();
  }
  out << (options.json ? ToJson(report, outputs) : ToTables(report, outputs));
  return Flush(out);
}

// `begin`: when loading began.
absl::Status RunSession(Session& session, const RunOptions& options,
                        Clock::time_point begin, std::ostream& out) {
  RunReport report;
  report.model = options.model;
  report.device = options.device;
  report.load_ms = MillisecondsSince(begin);
  const InputSources sources = {options.inputs, options.inputs_file,
                                options.random_seed.has_value(),
                                options.random_seed.value_or(0)};
  absl::StatusOr<std::vector<HostTensor>> inputs =
      MakeInputs(session.inputs(), sources);
  absl::StatusOr<std::vector<HostTensor>> outputs =
      MakeOutputs(session.IsMain() ? session.outputs()
                                   : std::vector<executor::TensorSpec>());
  PARTITA_RETURN_IF_ERROR(
      session.Agree(inputs.ok() ? outputs.status() : inputs.status()));
  PARTITA_RETURN_IF_ERROR(
      RunModel(session, options, *inputs, *outputs, report.times_ms));
  return session.Agree(Report(session, options, *outputs, report, out));
}

absl::Status Run(const RunOptions& options, std::ostream& out) {
  const Clock::time_point begin = Clock::now();
  PARTITA_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                           OpenSession(options));
  return RunSession(*session, options, begin, out);
}

int CodeOf(const absl::Status& status) {
  if (status.ok()) return 0;
  return absl::IsInternal(status) ? 70 : 1;
}

// This process as one rank. An error that all know is told once and ends all
// in order; another ends them at once.
int RunAsProcess(const RunOptions& options, const comm::Launch& launch,
                 std::ostream& out, std::ostream& error) {
  const Clock::time_point begin = Clock::now();
  const auto world = comm::MpiWorld::Start(launch);
  if (!world.ok()) {
    if (launch.rank == 0)
      error << "partita-run: " << world.status().message() << std::endl;
    return 1;
  }
  const std::unique_ptr<comm::Communicator> communicator =
      (*world)->MakeCommunicator(CommOptionsOf(options));
  absl::Status status;
  {
    const auto session = OpenProcessSession(options, launch, *communicator);
    status = session.ok() ? RunSession(**session, options, begin, out)
                          : session.status();
  }
  const bool known = communicator->agreed();
  if (!status.ok() && (!known || communicator->rank() == 0)) {
    error << "partita-run: "
          << (known ? "" : communicator->Describe(communicator->rank()) + ": ")
          << status.message() << std::endl;
  }
  if (!status.ok() && !known) (*world)->Abort(CodeOf(status));
  const absl::Status finished = (*world)->Finish();
  return CodeOf(status.ok() ? finished : status);
}

// One process of mpirun or srun; a model for one device runs as ever.
absl::Status CheckAlone(const RunOptions& options, const comm::Launch& launch) {
  if (options.devices > 0) return absl::OkStatus();
  PARTITA_ASSIGN_OR_RETURN(const program::Artifact artifact,
                           program::Artifact::Open(options.model));
  return CheckProcesses(artifact, options, launch);
}

}  // namespace

int RunCommand(const std::vector<std::string>& arguments, std::ostream& out,
               std::ostream& error) {
  const absl::StatusOr<RunOptions> options = ParseRunOptions(arguments);
  const std::optional<comm::Launch> launch = comm::DetectLaunch();
  // One voice where many processes read the same command line.
  const bool speaks = !launch || launch->rank == 0;
  if (!options.ok()) {
    if (speaks) {
      error << "partita-run: " << options.status().message()
            << "\nTry partita-run --help.\n";
    }
    return 2;
  }
  absl::Status status;
  if (options->help) {
    if (speaks) out << RunHelp();
  } else if (launch && launch->size > 1) {
    return RunAsProcess(*options, *launch, out, error);
  } else {
    if (launch) status = CheckAlone(*options, *launch);
    if (status.ok()) status = Run(*options, out);
  }
  if (status.ok()) status = Flush(out);
  if (status.ok()) return 0;
  error << "partita-run: " << status.message() << "\n";
  return CodeOf(status);
}

}  // namespace partita::tools
