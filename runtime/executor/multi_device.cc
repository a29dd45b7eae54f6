// Every rank loads and runs on its own thread.
#include "runtime/executor/multi_device.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/program/mesh.h"

namespace partita::executor {

MultiDeviceRunner::MultiDeviceRunner(
    std::shared_ptr<const program::Artifact> artifact, int devices,
    const comm::CommOptions& options)
    : artifact_(std::move(artifact)),
      devices_(devices),
      inputs_(GlobalInputs(artifact_->program())),
      outputs_(GlobalOutputs(artifact_->program())),
      parameters_(ListParameters(artifact_->program())),
      threads_(devices, options),
      ranks_(std::make_shared<Ranks>()) {
  ranks_->list.resize(static_cast<size_t>(devices));
}

absl::StatusOr<std::unique_ptr<MultiDeviceRunner>> MultiDeviceRunner::Load(
    const std::string& path, const MultiDeviceOptions& options) {
  PARTITA_ASSIGN_OR_RETURN(
      program::Artifact opened,
      program::Artifact::Open(path, {options.verify_checksums}));
  return Load(std::make_shared<const program::Artifact>(std::move(opened)),
              options);
}

absl::StatusOr<std::unique_ptr<MultiDeviceRunner>> MultiDeviceRunner::Load(
    std::shared_ptr<const program::Artifact> artifact,
    const MultiDeviceOptions& options) {
  const program::Mesh* mesh = artifact->program().mesh();
  const int64_t size = program::SizeOf(mesh);
  if (options.devices != 0 && options.devices != size) {
    return absl::FailedPreconditionError(absl::StrCat(
        artifact->path(), ": the model was compiled for ", size, " device",
        size == 1 ? "" : "s",
        mesh == nullptr ? ""
                        : absl::StrCat(" (", program::DescribeMesh(mesh), ")"),
        ", found --devices ", options.devices, "; leave it out, or compile ",
        "the model for another mesh"));
  }
  std::unique_ptr<MultiDeviceRunner> runner(
      new MultiDeviceRunner(artifact, static_cast<int>(size), options.comm));
  const std::shared_ptr<Ranks> ranks = runner->ranks_;
  PARTITA_RETURN_IF_ERROR(runner->threads_.Run(
      [ranks, artifact, options](comm::Communicator& communicator) {
        Rank& rank = ranks->list[static_cast<size_t>(communicator.rank())];
        absl::StatusOr<std::unique_ptr<device::Device>> device =
            options.make_device(communicator.rank());
        if (!device.ok()) return device.status();
        rank.device = *std::move(device);
        if (options.make_communicator) {
          PARTITA_ASSIGN_OR_RETURN(rank.device_communicator,
                                   options.make_communicator(communicator));
        }
        LoadOptions load;
        load.weights_dir = options.weights_dir;
        load.communicator = &communicator;
        load.device_communicator = rank.device_communicator.get();
        absl::StatusOr<std::unique_ptr<RankExecutor>> executor =
            RankExecutor::Load(artifact, *rank.device, load);
        if (!executor.ok()) return executor.status();
        rank.executor = *std::move(executor);
        return absl::OkStatus();
      },
      /*timeout=*/10));
  runner->step_count_ = ranks->list[0].executor->executor().step_count();
  runner->looks_ahead_ = ranks->list[0].executor->LooksAhead();
  runner->leaves_together_ = ranks->list[0].device_communicator != nullptr;
  return runner;
}

// Ranks leave the devices' groups together. If loading failed, a rank left
// behind may still use its parts, so only its own thread touches them.
MultiDeviceRunner::~MultiDeviceRunner() {
  if (!leaves_together_) return;
  // After an error each rank ends without waiting for the others.
  threads_
      .Run([ranks = ranks_](comm::Communicator& communicator) {
        Rank& rank = ranks->list[static_cast<size_t>(communicator.rank())];
        rank.executor.reset();
        rank.device_communicator.reset();
        return absl::OkStatus();
      })
      .IgnoreError();
}

absl::Status MultiDeviceRunner::Run(const std::vector<ConstTensor>& inputs,
                                    const std::vector<MutableTensor>& outputs) {
  return threads_.Run(
      [ranks = ranks_, inputs, outputs, next = std::exchange(next_, {})](
          comm::Communicator& communicator) -> absl::Status {
        RankExecutor& executor =
            *ranks->list[static_cast<size_t>(communicator.rank())].executor;
        if (!next.empty()) PARTITA_RETURN_IF_ERROR(executor.Prefetch(next));
        return executor.Run(inputs, outputs);
      });
}

std::string MultiDeviceRunner::NotAhead() const {
  for (size_t rank = 0; rank < ranks_->list.size(); ++rank) {
    const std::string& found =
        ranks_->list[rank].executor->executor().not_ahead();
    if (!found.empty()) return absl::StrCat("rank ", rank, ": ", found);
  }
  return "";
}

// Finds the caller's mistakes before the ranks run: an error on a rank would
// end all of them.
absl::Status MultiDeviceRunner::ReadParameter(const std::string& name,
                                              const MutableTensor& whole) {
  PARTITA_ASSIGN_OR_RETURN(const ParameterSpec* spec,
                           FindParameter(parameters_, name));
  PARTITA_RETURN_IF_ERROR(CheckParameterTensor(
      spec->whole, {whole.dtype, whole.shape, whole.data}));
  return threads_.Run(
      [ranks = ranks_, name, whole](comm::Communicator& communicator) {
        return ranks->list[static_cast<size_t>(communicator.rank())]
            .executor->ReadParameter(name, whole);
      });
}

absl::Status MultiDeviceRunner::WriteParameter(const std::string& name,
                                               const ConstTensor& whole) {
  PARTITA_ASSIGN_OR_RETURN(const ParameterSpec* spec,
                           FindParameter(parameters_, name));
  PARTITA_RETURN_IF_ERROR(CheckParameterTensor(spec->whole, whole));
  PARTITA_RETURN_IF_ERROR(CheckUpdated(*spec));
  return threads_.Run(
      [ranks = ranks_, name, whole](comm::Communicator& communicator) {
        return ranks->list[static_cast<size_t>(communicator.rank())]
            .executor->WriteParameter(name, whole);
      });
}

double MultiDeviceRunner::FlopsPerRun() const {
  double flops = 0;
  for (const Rank& rank : ranks_->list)
    flops += rank.executor->executor().FlopsPerRun();
  return flops;
}

MemoryUse MultiDeviceRunner::Memory() const {
  MemoryUse most;
  for (const Rank& rank : ranks_->list) {
    const MemoryUse use = rank.executor->executor().Memory();
    if (use.Total() >= most.Total()) most = use;
  }
  return most;
}

std::vector<RankUse> MultiDeviceRunner::Uses() const {
  std::vector<RankUse> uses;
  for (const Rank& rank : ranks_->list)
    uses.push_back(rank.executor->executor().Use());
  return uses;
}

std::vector<Executor*> MultiDeviceRunner::FirstOfEntries() {
  std::vector<Executor*> first(artifact_->program().entries()->size());
  for (const Rank& rank : ranks_->list) {
    Executor& executor = rank.executor->executor();
    Executor*& known = first[static_cast<size_t>(
        executor.place().IndexAlong(artifact_->program().pipeline()))];
    if (known == nullptr) known = &executor;
  }
  return first;
}

// Devices that exchange among themselves must agree on capturing, so all are
// timed or none.
void MultiDeviceRunner::EnableProfile() {
  for (Executor* executor : FirstOfEntries()) executor->EnableProfile();
  for (const Rank& rank : ranks_->list)
    if (rank.device_communicator != nullptr)
      rank.executor->executor().EnableProfile();
}

std::vector<Profile*> MultiDeviceRunner::profiles() {
  std::vector<Profile*> profiles;
  for (Executor* executor : FirstOfEntries())
    if (executor->profile() != nullptr) profiles.push_back(executor->profile());
  return profiles;
}

absl::Status MultiDeviceRunner::EnableNanTrace() {
  for (const Rank& rank : ranks_->list)
    PARTITA_RETURN_IF_ERROR(rank.executor->executor().EnableNanTrace());
  return absl::OkStatus();
}

std::string MultiDeviceRunner::DescribeNonFinite() const {
  NumberKind worst = NumberKind::kFinite;
  for (const Rank& rank : ranks_->list)
    worst = std::max(worst, rank.executor->executor().Outcome());
  if (worst == NumberKind::kFinite) return "";
  std::optional<NonFinite> first;
  for (const Rank& rank : ranks_->list) {
    std::optional<NonFinite> found =
        rank.executor->executor().FindNonFinite(worst);
    if (found && (!first || found->order < first->order))
      first = std::move(found);
  }
  return first ? first->text : kUntraced;
}

}  // namespace partita::executor
