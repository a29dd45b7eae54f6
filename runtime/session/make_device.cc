// Finds the device of a model in the list of devices and calls its functions.
#include "runtime/session/make_device.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/base/processors.h"
#include "runtime/base/status_macros.h"
#include "runtime/program/mesh.h"
#include "runtime/program/types.h"
#include "runtime/session/devices.h"
#include "runtime/session/open_ranks.h"

namespace partita::session {
namespace {

device::JobOptions JobOf(const SessionOptions& options,
                         const program::Program& program) {
  device::JobOptions job;
  job.model = options.model;
  job.ranks = program::SizeOf(program.mesh());
  job.share_gpu = options.share_gpu;
  job.comm = CommOptionsOf(options);
  return job;
}

}  // namespace

absl::StatusOr<const device::DeviceKind*> DeviceOf(
    const SessionOptions& options, const program::Program& program) {
  const DeviceList& devices = Devices();
  PARTITA_RETURN_IF_ERROR(CheckDevices(devices));
  if (options.device.empty()) {
    const device::DeviceKind* const found =
        FindDeviceOfTarget(devices, program::TargetOf(program));
    return found != nullptr ? found : &devices.front();
  }
  const device::DeviceKind* const found = FindDevice(devices, options.device);
  if (found != nullptr) return found;
  return absl::InvalidArgumentError(
      absl::StrCat("expected the device ", DeviceNames(devices), ", found '",
                   options.device, "'"));
}

absl::Status CheckShareGpu(const SessionOptions& options,
                           const program::Program& program) {
  if (!options.share_gpu) return absl::OkStatus();
  PARTITA_ASSIGN_OR_RETURN(const device::DeviceKind* const kind,
                           DeviceOf(options, program));
  if (!RefusesShareGpu(*kind)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "--share-gpu: expected a model for GPUs, found ", options.model,
      ", which was compiled for the CPU; leave it out, or compile with "
      "--target "
      "cuda:sm_80, or what architecture the GPU has"));
}

void PrepareEnvironment(const SessionOptions& options,
                        const program::Program& program) {
  const absl::StatusOr<const device::DeviceKind*> kind =
      DeviceOf(options, program);
  if (kind.ok() && (*kind)->prepare_environment != nullptr)
    (*kind)->prepare_environment(JobOf(options, program));
}

absl::StatusOr<std::unique_ptr<device::Device>> MakeDevice(
    const SessionOptions& options, const program::Program& program, int index,
    int threads) {
  PARTITA_ASSIGN_OR_RETURN(const device::DeviceKind* const kind,
                           DeviceOf(options, program));
  return kind->make(JobOf(options, program), index, threads);
}

absl::StatusOr<device::MakeCommunicator> MakeCommunicators(
    const SessionOptions& options, const program::Program& program,
    bool in_threads) {
  PARTITA_ASSIGN_OR_RETURN(const device::DeviceKind* const kind,
                           DeviceOf(options, program));
  if (kind->communicators != nullptr)
    return kind->communicators(JobOf(options, program), in_threads);
  return device::MakeCommunicator([](int, comm::Communicator&) {
    return std::unique_ptr<comm::DeviceCommunicator>();
  });
}

int ThreadsOf(const SessionOptions& options, int devices, int sharers) {
  if (options.threads > 0) return std::max(1, options.threads / sharers);
  return std::max(1, std::min(base::AffinityProcessors() / devices,
                              base::MachineProcessors() / sharers));
}

}  // namespace partita::session
