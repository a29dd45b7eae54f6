// The only file that names all devices.
#include "runtime/session/make_device.h"

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/processors.h"
#include "runtime/base/status_macros.h"
#include "runtime/cpu/cpu_device.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/cuda/nccl.h"
#include "runtime/device/null_device.h"
#include "runtime/program/mesh.h"
#include "runtime/session/session.h"

namespace partita::session {
namespace {

// True if the launcher gives each process a single GPU.
bool OneGpuIsVisible() {
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return visible != nullptr && *visible != '\0' &&
         std::string(visible).find(',') == std::string::npos;
}

// Equal for ranks that use the same GPU.
std::string NameOfGpu(int ordinal) {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return absl::StrCat(host, ", GPU ", ordinal, " of ",
                      visible == nullptr ? "all" : visible);
}

// NCCL refuses two ranks on one GPU. Collective over all ranks.
absl::StatusOr<bool> HaveGpusOfTheirOwn(comm::Communicator& base, int ordinal) {
  PARTITA_ASSIGN_OR_RETURN(
      const std::vector<std::string> names,
      base.GatherTexts(NameOfGpu(ordinal), "places of GPUs"));
  return std::set<std::string>(names.begin(), names.end()).size() ==
         names.size();
}

// True if this process sees or uses one GPU only, so that all its devices share
// GPU 0.
bool StandOnOneGpu(const SessionOptions& options) {
  return options.share_gpu || OneGpuIsVisible();
}

int OrdinalOf(const SessionOptions& options, int index) {
  return StandOnOneGpu(options) ? 0 : index;
}

}  // namespace

std::string DeviceOf(const SessionOptions& options,
                     const program::Program& program) {
  if (!options.device.empty()) return options.device;
  const bool for_gpus = program.target() != nullptr &&
                        program.target()->str().rfind("cuda:", 0) == 0;
  return for_gpus ? "cuda" : "cpu";
}

absl::Status CheckShareGpu(const SessionOptions& options,
                           const program::Program& program) {
  if (!options.share_gpu || DeviceOf(options, program) != "cpu")
    return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "--share-gpu: expected a model for GPUs, found ", options.model,
      ", which was compiled for the CPU; leave it out, or compile with "
      "--target "
      "cuda:sm_80, or what architecture the GPU has"));
}

// A receive is a kernel that spins until another rank sends. Loading a kernel
// at its first use may wait until all work on its GPU is done, so two ranks
// that receive from each other could wait for ever (CUDA programming guide,
// "Lazy Loading", on concurrent execution). Therefore all kernels, the
// libraries' and Partita's, are loaded before the first step.
void PrepareEnvironment(const SessionOptions& options,
                        const program::Program& program) {
  if (DeviceOf(options, program) != "cuda" || options.share_gpu ||
      program::SizeOf(program.mesh()) == 1)
    return;
  setenv("CUDA_MODULE_LOADING", "EAGER", /*overwrite=*/0);
}

absl::StatusOr<std::unique_ptr<device::Device>> MakeDevice(
    const SessionOptions& options, const program::Program& program, int index,
    int threads) {
  const std::string device = DeviceOf(options, program);
  if (device == "null")
    return std::unique_ptr<device::Device>(
        std::make_unique<device::NullDevice>());
  if (device == "cpu") return cpu::MakeCpuDevice({threads});
  cuda::CudaOptions cuda;
  cuda.ordinal = OrdinalOf(options, index);
  // Ranks that compute the same results must use the same algorithms.
  cuda.tuned = options.model + ".algorithms";
  cuda.measures = program::SizeOf(program.mesh()) == 1;
  return cuda::MakeCudaDevice(cuda);
}

std::shared_ptr<cuda::SharedGpu> MakeSharedGpu(
    const SessionOptions& options, const program::Program& program) {
  const int64_t ranks = program::SizeOf(program.mesh());
  if (DeviceOf(options, program) != "cuda" || ranks == 1 ||
      !StandOnOneGpu(options))
    return nullptr;
  cuda::SharedGpuOptions shared;
  shared.comm = CommOptionsOf(options);
  return cuda::MakeSharedGpu(static_cast<int>(ranks), shared);
}

absl::StatusOr<std::unique_ptr<comm::DeviceCommunicator>>
MakeDeviceCommunicator(const SessionOptions& options,
                       const program::Program& program, int index,
                       comm::Communicator& base,
                       std::shared_ptr<cuda::SharedGpu> shared) {
  if (shared != nullptr) {
    absl::StatusOr<std::unique_ptr<comm::DeviceCommunicator>> made =
        cuda::MakeSharedCommunicator(std::move(shared), base);
    PARTITA_RETURN_IF_ERROR(base.Agree(made.status()));
    return made;
  }
  if (DeviceOf(options, program) != "cuda" || options.share_gpu)
    return std::unique_ptr<comm::DeviceCommunicator>();
  cuda::NcclOptions nccl;
  nccl.ordinal = OrdinalOf(options, index);
  PARTITA_ASSIGN_OR_RETURN(const bool own,
                           HaveGpusOfTheirOwn(base, nccl.ordinal));
  if (!own) return std::unique_ptr<comm::DeviceCommunicator>();
  nccl.comm = CommOptionsOf(options);
  return cuda::AgreeOnNccl(base, nccl);
}

int ThreadsOf(const SessionOptions& options, int devices, int sharers) {
  if (options.threads > 0) return std::max(1, options.threads / sharers);
  return std::max(1, std::min(base::AffinityProcessors() / devices,
                              base::MachineProcessors() / sharers));
}

}  // namespace partita::session
