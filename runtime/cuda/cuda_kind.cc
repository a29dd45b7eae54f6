// Decides which GPU each rank uses and how the ranks exchange tensors.
#include "runtime/cuda/cuda_kind.h"

#include <stdlib.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/comm/launch.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/nccl.h"
#include "runtime/cuda/shared_gpu.h"
#include "runtime/program/target.h"

namespace partita::cuda {
namespace {

using MadeCommunicator =
    absl::StatusOr<std::unique_ptr<comm::DeviceCommunicator>>;

// True if CUDA_VISIBLE_DEVICES leaves a single GPU.
bool OneGpuIsChosen() {
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return visible != nullptr && *visible != '\0' &&
         std::string(visible).find(',') == std::string::npos;
}

// True if each process of a job sees a single GPU: by CUDA_VISIBLE_DEVICES, or
// by the system's control groups.
bool OneGpuIsVisible() {
  if (OneGpuIsChosen()) return true;
  const auto launch = comm::DetectLaunch();
  if (!launch || launch->size < 2) return false;
  int count = 0;
  const auto driver = Driver::Open("");
  return driver.ok() && (*driver)->DeviceCount(&count) == kCuSuccess &&
         count == 1;
}

// The driver's identifier of a GPU, equal in all processes; empty if the driver
// has none. Launchers may show each process its own GPU as number 0.
std::string UuidOf(int ordinal) {
  const auto driver = Driver::Open("");
  CuDevice device = 0;
  CuUuid uuid = {};
  if (!driver.ok() || (*driver)->DeviceUuid == nullptr ||
      (*driver)->DeviceAt(&device, ordinal) != kCuSuccess ||
      (*driver)->DeviceUuid(&uuid, device) != kCuSuccess)
    return "";
  return absl::BytesToHexString(absl::string_view(
      reinterpret_cast<const char*>(uuid.bytes), sizeof uuid.bytes));
}

// Equal for ranks that use the same GPU.
std::string NameOfGpu(int ordinal) {
  const std::string uuid = UuidOf(ordinal);
  if (!uuid.empty()) return absl::StrCat("GPU ", uuid);
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
bool UseOneGpu(const device::JobOptions& job) {
  return job.share_gpu || OneGpuIsVisible();
}

int OrdinalOf(const device::JobOptions& job, int index) {
  return UseOneGpu(job) ? 0 : index;
}

// Kernels are loaded when they are first needed, which saves seconds and GPU
// memory: the libraries have thousands. Drivers before CUDA 12.2 load all by
// default.
void PrepareEnvironment(const device::JobOptions&) {
  setenv("CUDA_MODULE_LOADING", "LAZY", /*overwrite=*/0);
}

// A receive is a kernel that spins until another rank sends. Loading a kernel
// may wait until all work on its GPU is done, so two ranks that receive from
// each other could wait for ever (CUDA programming guide, "Lazy Loading", on
// concurrent execution). Therefore ranks on several GPUs load all kernels
// before the first step.
bool WarmsKernels(const device::JobOptions& job) {
  return job.ranks > 1 && !job.share_gpu;
}

absl::StatusOr<std::unique_ptr<device::Device>> Make(
    const device::JobOptions& job, int index, int threads) {
  CudaOptions options;
  options.ordinal = OrdinalOf(job, index);
  // Ranks that compute the same results must use the same algorithms.
  options.tuned = job.model + ".algorithms";
  options.measures = job.ranks == 1;
  if (job.ranks > 1) options.sparse = "none";
  options.warms = WarmsKernels(job);
  return MakeCudaDevice(options);
}

MadeCommunicator ShareGpu(std::shared_ptr<SharedGpu> shared,
                          comm::Communicator& base) {
  MadeCommunicator made = MakeSharedCommunicator(std::move(shared), base);
  PARTITA_RETURN_IF_ERROR(base.Agree(made.status()));
  return made;
}

// Null if NCCL cannot be used.
MadeCommunicator UseNccl(const device::JobOptions& job, int index,
                         comm::Communicator& base) {
  if (job.share_gpu) return std::unique_ptr<comm::DeviceCommunicator>();
  NcclOptions options;
  options.ordinal = OrdinalOf(job, index);
  PARTITA_ASSIGN_OR_RETURN(const bool own,
                           HaveGpusOfTheirOwn(base, options.ordinal));
  if (!own && !OneGpuIsChosen())
    return absl::FailedPreconditionError(
        "expected a GPU for each rank, found ranks with the same GPU; start at "
        "most as many ranks on a machine as it has GPUs, or share it "
        "(--share-gpu)");
  if (!own) return std::unique_ptr<comm::DeviceCommunicator>();
  options.comm = job.comm;
  return AgreeOnNccl(base, options);
}

device::MakeCommunicator Communicators(const device::JobOptions& job,
                                       bool in_threads) {
  if (!in_threads || job.ranks == 1 || !UseOneGpu(job))
    return [job](int index, comm::Communicator& base) {
      return UseNccl(job, index, base);
    };
  SharedGpuOptions options;
  options.comm = job.comm;
  return [shared = MakeSharedGpu(static_cast<int>(job.ranks), options)](
             int index, comm::Communicator& base) {
    return ShareGpu(shared, base);
  };
}

}  // namespace

device::DeviceKind CudaKind() {
  device::DeviceKind kind;
  kind.name = "cuda";
  kind.targets = {program::kCudaTarget};
  kind.is_gpu = true;
  kind.make = &Make;
  kind.communicators = &Communicators;
  kind.prepare_environment = &PrepareEnvironment;
  return kind;
}

}  // namespace partita::cuda
