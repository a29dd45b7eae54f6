// Chooses devices, threads and communicators for the ranks.
#include "runtime/session/open_ranks.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/program/mesh.h"
#include "runtime/session/make_device.h"

namespace partita::session {
namespace {

using executor::RankGroup;

// `threads`: CPU threads per device. `in_threads`: all ranks are in this
// process.
absl::StatusOr<executor::RankOptions> RankOptionsOf(
    const SessionOptions& options,
    const std::shared_ptr<const program::Artifact>& artifact, int threads,
    bool in_threads) {
  executor::RankOptions rank;
  rank.weights_dir = options.weights_dir;
  rank.loop_limit = CommOptionsOf(options).timeout;
  rank.state_store = StateStoreOf(options, artifact->program());
  rank.make_device = [options, artifact, threads](int index) {
    return MakeDevice(options, artifact->program(), index, threads);
  };
  PARTITA_ASSIGN_OR_RETURN(
      rank.make_communicator,
      MakeCommunicators(options, artifact->program(), in_threads));
  return rank;
}

// Checks that all ranks opened the same bytes, at any path.
absl::Status CheckSameModel(const program::Artifact& artifact,
                            comm::Communicator& communicator) {
  const std::string content =
      absl::StrCat("checksum ", absl::Hex(artifact.checksum(), absl::kZeroPad8),
                   ", ", artifact.file_bytes(), " bytes");
  PARTITA_ASSIGN_OR_RETURN(const std::vector<std::string> contents,
                           communicator.GatherTexts(content, "models"));
  PARTITA_ASSIGN_OR_RETURN(const std::vector<std::string> paths,
                           communicator.GatherTexts(artifact.path(), "models"));
  const auto other =
      std::find_if(contents.begin(), contents.end(),
                   [&](const std::string& c) { return c != contents[0]; });
  if (other == contents.end()) return absl::OkStatus();
  const auto describe = [&](size_t rank) {
    return absl::StrCat(communicator.Describe(static_cast<int>(rank)), " with ",
                        paths[rank], " (", contents[rank], ")");
  };
  return communicator.Agree(absl::FailedPreconditionError(absl::StrCat(
      "expected the same compiled model on all ranks, found ", describe(0),
      " and ", describe(static_cast<size_t>(other - contents.begin())),
      "; compile it once and give every rank a copy of that file")));
}

}  // namespace

executor::StateStoreOptions StateStoreOf(const SessionOptions& options,
                                         const program::Program& program) {
  executor::StateStoreOptions store = {options.offload_dir,
                                       options.offload_buffers};
  const program::StateFiles* files = program.state_files();
  if (files == nullptr) return store;
  if (store.folder.empty()) store.folder = files->folder()->str();
  if (store.buffer_bytes == 0) store.buffer_bytes = files->buffers();
  return store;
}

absl::Status CheckStateStore(const SessionOptions& options,
                             const program::Program& program) {
  if (options.offload_buffers == 0 ||
      !StateStoreOf(options, program).folder.empty())
    return absl::OkStatus();
  return absl::FailedPreconditionError(
      "--offload-buffers: expected --offload-dir, or a model compiled with "
      "offload: {optimizer: nvme}");
}

comm::CommOptions CommOptionsOf(const SessionOptions& options) {
  comm::CommOptions comm = comm::OptionsFromEnvironment();
  if (options.timeout) {
    comm.timeout = std::chrono::milliseconds(
        static_cast<int64_t>(*options.timeout * 1000));
  }
  return comm;
}

absl::Status CheckProcesses(const program::Artifact& artifact,
                            const SessionOptions& options,
                            const comm::Launch& launch) {
  PARTITA_RETURN_IF_ERROR(CheckShareGpu(options, artifact.program()));
  PARTITA_RETURN_IF_ERROR(CheckStateStore(options, artifact.program()));
  const program::Mesh* mesh = artifact.program().mesh();
  const int64_t size = program::SizeOf(mesh);
  if (size != launch.size) {
    return absl::FailedPreconditionError(absl::StrCat(
        artifact.path(), ": the model was compiled for ", size, " device",
        size == 1 ? "" : "s",
        mesh == nullptr ? ""
                        : absl::StrCat(" (", program::DescribeMesh(mesh), ")"),
        ", found ", launch.size, " process", launch.size == 1 ? "" : "es",
        " of ", launch.launcher, "; start ", size, " (",
        launch.launcher == "srun"       ? "srun -n "
        : launch.launcher == "torchrun" ? "WORLD_SIZE="
                                        : "mpirun -np ",
        size, "), or compile the model for a mesh of ", launch.size));
  }
  if (options.devices == 0 || options.devices == size) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      artifact.path(), ": the model was compiled for ", size,
      " devices, found --devices ", options.devices, "; leave it out where ",
      launch.launcher, " starts the processes"));
}

absl::StatusOr<std::unique_ptr<RankGroup>> OpenAllRanks(
    const SessionOptions& options, const RankGroup* states) {
  PARTITA_ASSIGN_OR_RETURN(program::Artifact opened,
                           program::Artifact::Open(options.model));
  const auto artifact =
      std::make_shared<const program::Artifact>(std::move(opened));
  PARTITA_ASSIGN_OR_RETURN(const device::DeviceKind* const kind,
                           DeviceOf(options, artifact->program()));
  PARTITA_RETURN_IF_ERROR(CheckShareGpu(options, artifact->program()));
  PARTITA_RETURN_IF_ERROR(CheckStateStore(options, artifact->program()));
  executor::GroupOptions group;
  group.devices = options.devices;
  group.comm = CommOptionsOf(options);
  group.one_rank =
      !kind->executes && artifact->program().entries()->size() == 1;
  const int64_t size =
      group.one_rank ? 1 : program::SizeOf(artifact->program().mesh());
  PrepareEnvironment(options, artifact->program());
  const int devices = static_cast<int>(std::min<int64_t>(size, 1 << 20));
  PARTITA_ASSIGN_OR_RETURN(
      static_cast<executor::RankOptions&>(group),
      RankOptionsOf(
          options, artifact,
          size == 1 ? options.threads : ThreadsOf(options, devices, devices),
          /*in_threads=*/true));
  if (states != nullptr)
    group.states_of = [states](int index) { return states->executor(index); };
  return RankGroup::LoadAll(artifact, group);
}

absl::StatusOr<std::unique_ptr<RankGroup>> OpenOneRank(
    const SessionOptions& options, const comm::Launch& launch,
    comm::Communicator& job, const RankGroup* states) {
  absl::StatusOr<program::Artifact> opened =
      program::Artifact::Open(options.model);
  PARTITA_RETURN_IF_ERROR(job.Agree(opened.status()));
  PrepareEnvironment(options, opened->program());
  PARTITA_RETURN_IF_ERROR(CheckSameModel(*opened, job));
  PARTITA_RETURN_IF_ERROR(job.Agree(CheckProcesses(*opened, options, launch)));
  const auto artifact =
      std::make_shared<const program::Artifact>(*std::move(opened));
  PARTITA_ASSIGN_OR_RETURN(
      executor::RankOptions rank,
      RankOptionsOf(options, artifact, ThreadsOf(options, 1, launch.local_size),
                    /*in_threads=*/false));
  if (states != nullptr)
    rank.states_of = [states](int) { return states->executor(0); };
  return RankGroup::LoadOne(artifact, rank, launch.local_rank, job);
}

}  // namespace partita::session
