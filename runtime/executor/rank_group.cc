// Loads and runs this process's ranks.
#include "runtime/executor/rank_group.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/program/types.h"

namespace partita::executor {

RankGroup::RankGroup(std::shared_ptr<const program::Artifact> artifact,
                     int local_ranks)
    : artifact_(std::move(artifact)),
      devices_(static_cast<int>(program::SizeOf(program().mesh()))),
      inputs_(GlobalInputs(program())),
      outputs_(GlobalOutputs(program())),
      parameters_(ListParameters(program())),
      ranks_(std::make_shared<Ranks>()) {
  ranks_->list.resize(static_cast<size_t>(local_ranks));
}

absl::StatusOr<std::unique_ptr<RankGroup>> RankGroup::LoadAll(
    const std::string& path, const GroupOptions& options) {
  PARTITA_ASSIGN_OR_RETURN(program::Artifact opened,
                           program::Artifact::Open(path));
  return LoadAll(std::make_shared<const program::Artifact>(std::move(opened)),
                 options);
}

absl::StatusOr<std::unique_ptr<RankGroup>> RankGroup::LoadAll(
    std::shared_ptr<const program::Artifact> artifact,
    const GroupOptions& options) {
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
  const int local = options.one_rank ? 1 : static_cast<int>(size);
  std::unique_ptr<RankGroup> group(new RankGroup(artifact, local));
  const std::shared_ptr<Ranks> ranks = group->ranks_;
  if (local == 1) {
    PARTITA_ASSIGN_OR_RETURN(ranks->list[0],
                             Rank::Load(artifact, options, 0, nullptr));
  } else {
    group->threads_ = std::make_unique<RankThreads>(local, options.comm);
    PARTITA_RETURN_IF_ERROR(group->threads_->Run(
        [ranks, artifact,
         options](comm::Communicator& communicator) -> absl::Status {
          const int rank = communicator.rank();
          PARTITA_ASSIGN_OR_RETURN(
              ranks->list[static_cast<size_t>(rank)],
              Rank::Load(artifact, options, rank, &communicator));
          return absl::OkStatus();
        },
        /*timeout_factor=*/10));
  }
  for (const std::unique_ptr<Rank>& rank : ranks->list)
    group->flops_ += rank->executor().FlopsPerRun();
  if (options.one_rank) group->flops_ *= static_cast<double>(size);
  group->leaves_together_ = group->first().ExchangesOnDevices();
  return group;
}

// Ranks leave the devices' groups together. If loading failed, a rank left
// behind may still use its parts, so only its own thread touches them.
RankGroup::~RankGroup() {
  if (!leaves_together_ || threads_ == nullptr) return;
  // After an error each rank ends without waiting for the others.
  threads_
      ->Run([ranks = ranks_](comm::Communicator& communicator) {
        ranks->list[static_cast<size_t>(communicator.rank())].reset();
        return absl::OkStatus();
      })
      .IgnoreError();
}

absl::Status RankGroup::OnEachRank(std::function<absl::Status(Rank&)> work,
                                   int timeout_factor) {
  if (threads_ == nullptr) return work(first());
  return threads_->Run(
      [ranks = ranks_,
       work = std::move(work)](comm::Communicator& communicator) {
        return work(*ranks->list[static_cast<size_t>(communicator.rank())]);
      },
      timeout_factor);
}

int64_t RankGroup::LimitOf(const std::string& input) const {
  for (int64_t i = 0; i < program::SizeOrZero(program().inputs()); ++i) {
    const program::Port& port =
        *program().inputs()->Get(static_cast<unsigned>(i));
    if (port.name()->str() == input) return port.limit();
  }
  return 0;
}

int64_t RankGroup::step_count() const {
  return first().executor().step_count();
}

absl::Status RankGroup::Run(const std::vector<ConstTensor>& inputs,
                            const std::vector<MutableTensor>& outputs) {
  return OnEachRank([inputs, outputs, next = std::exchange(next_, {})](
                        Rank& rank) -> absl::Status {
    if (!next.empty()) PARTITA_RETURN_IF_ERROR(rank.Prefetch(next));
    return rank.Run(inputs, outputs);
  });
}

const Executor* RankGroup::executor(int index) const {
  const auto& ranks = ranks_->list;
  return index >= 0 && static_cast<size_t>(index) < ranks.size()
             ? &ranks[static_cast<size_t>(index)]->executor()
             : nullptr;
}

bool RankGroup::LooksAhead() const { return first().executor().LooksAhead(); }

std::string RankGroup::NotAhead() const {
  for (size_t i = 0; i < ranks_->list.size(); ++i) {
    const std::string& found = ranks_->list[i]->executor().not_ahead();
    if (found.empty()) continue;
    return devices_ == 1 ? found
                         : absl::StrCat("rank ", rank() + static_cast<int>(i),
                                        ": ", found);
  }
  return "";
}

// Finds the caller's mistakes before the ranks run: an error on a rank would
// end all of them.
absl::Status RankGroup::ReadParameter(const std::string& name,
                                      const MutableTensor& whole) {
  PARTITA_ASSIGN_OR_RETURN(const ParameterSpec* spec,
                           FindParameter(parameters_, name));
  if (job_ != nullptr)
    return absl::FailedPreconditionError(absl::StrCat(
        "parameter '", name, "': expected all devices in this process, found ",
        processes(),
        " processes, each with a part; save a checkpoint, which holds whole "
        "parameters"));
  PARTITA_RETURN_IF_ERROR(CheckParameterTensor(
      spec->whole, {whole.dtype, whole.shape, whole.data}));
  return OnEachRank(
      [name, whole](Rank& rank) { return rank.ReadParameter(name, whole); });
}

absl::Status RankGroup::WriteParameter(const std::string& name,
                                       const ConstTensor& whole) {
  PARTITA_ASSIGN_OR_RETURN(const ParameterSpec* spec,
                           FindParameter(parameters_, name));
  PARTITA_RETURN_IF_ERROR(CheckParameterTensor(spec->whole, whole));
  PARTITA_RETURN_IF_ERROR(CheckUpdated(*spec));
  return OnEachRank(
      [name, whole](Rank& rank) { return rank.WriteParameter(name, whole); });
}

std::vector<Executor*> RankGroup::FirstOfEntries() {
  std::vector<Executor*> first(program().entries()->size());
  for (const std::unique_ptr<Rank>& rank : ranks_->list) {
    Executor*& known = first[static_cast<size_t>(
        rank->executor().place().IndexAlong(program().pipeline()))];
    if (known == nullptr) known = &rank->executor();
  }
  first.erase(std::remove(first.begin(), first.end(), nullptr), first.end());
  return first;
}

// Devices that exchange among themselves must agree on capturing, so all are
// timed or none.
void RankGroup::EnableProfile() {
  for (Executor* executor : FirstOfEntries()) executor->EnableProfile();
  for (const std::unique_ptr<Rank>& rank : ranks_->list)
    if (rank->ExchangesOnDevices()) rank->executor().EnableProfile();
}

std::vector<Profile*> RankGroup::profiles() {
  std::vector<Profile*> profiles;
  for (Executor* executor : FirstOfEntries())
    if (executor->profile() != nullptr) profiles.push_back(executor->profile());
  return profiles;
}

absl::Status RankGroup::EnableNanTrace() {
  for (const std::unique_ptr<Rank>& rank : ranks_->list)
    PARTITA_RETURN_IF_ERROR(rank->executor().EnableNanTrace());
  return absl::OkStatus();
}

MemoryUse FullestOf(const std::vector<RankUse>& uses) {
  MemoryUse most;
  for (const RankUse& use : uses)
    if (use.memory.Total() >= most.Total()) most = use.memory;
  return most;
}

}  // namespace partita::executor
