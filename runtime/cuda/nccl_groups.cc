// The first member of a group broadcasts the group's NCCL id over the base
// communicator.
#include "runtime/cuda/nccl_groups.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status_macros.h"

namespace partita::cuda {
namespace {

using Clock = std::chrono::steady_clock;

// Time for the base communicator to learn that a rank which NCCL has lost has
// failed.
constexpr std::chrono::milliseconds kGrace{1000};
// Time for an abort to end after the graphs are destroyed.
constexpr std::chrono::seconds kAbortTime{10};
constexpr std::chrono::microseconds kPause{20};
// Polls before the first pause: most calls end at once.
constexpr int kRounds = 200;

std::string NameOf(const std::vector<int>& ranks) {
  return absl::StrCat("the group of the GPUs of ranks ",
                      absl::StrJoin(ranks, ", "));
}

}  // namespace

NcclGroups::~NcclGroups() {
  for (auto group = groups_.begin(); group != groups_.end();) {
    // Leaving waits for the other members, which may be gone. Aborts then.
    const auto name = [&ranks = group->first.second] {
      return absl::StrCat("leaving ", NameOf(ranks));
    };
    if (!base_.Progress().ok() ||
        !Settle(group->second, nccl_->Finalize(group->second), name).ok())
      break;
    nccl_->Leave(group->second);
    group = groups_.erase(group);
  }
  Abort();
  // If it takes longer, the threads and the groups are left behind.
  if (aborted_.valid()) aborted_.wait_for(kAbortTime);
}

// ncclCommAbort first stops the group's work on the GPU, then waits until no
// graph holds work of the group (its localPersistentRefs; NCCL 2.18 to 2.28).
// So it must not keep the thread that destroys the graphs waiting. A graph ends
// once the work of all its groups has stopped, so each group has its own
// thread: only later versions of NCCL stop all groups of a thread first,
// between GroupStart and GroupEnd.
void NcclGroups::Abort() {
  if (groups_.empty()) return;
  auto done = std::make_shared<std::promise<void>>();
  auto left = std::make_shared<std::atomic<size_t>>(groups_.size());
  aborted_ = done->get_future();
  for (const auto& [key, comm] : groups_)
    std::thread([nccl = nccl_, comm = comm, done, left] {
      nccl->Abort(comm);
      if (--*left == 0) done->set_value();
    }).detach();
  groups_.clear();
}

absl::StatusOr<NcclComm> NcclGroups::Join(const std::vector<int>& ranks,
                                          int index, Lane lane, bool* joined) {
  if (ranks.size() == 1) return nullptr;
  const auto found = groups_.find({lane, ranks});
  if (joined != nullptr) *joined = found != groups_.end();
  if (found != groups_.end()) return found->second;
  comm::Operation share;
  share.kind = comm::Kind::kBroadcast;
  share.dtype = base::DType::kU8;
  share.input_shape = share.output_shape = {sizeof(NcclId)};
  share.name = absl::StrCat("the id of ", NameOf(ranks));
  PARTITA_ASSIGN_OR_RETURN(const std::unique_ptr<comm::Collective> broadcast,
                           base_.Prepare(std::move(share), ranks));
  NcclId own = {}, id = {};
  if (index == 0)
    PARTITA_RETURN_IF_ERROR(
        nccl_->Check(nccl_->MakeId(&own), "making a group of GPUs"));
  PARTITA_RETURN_IF_ERROR(base_.Run(*broadcast, &own, &id));
  NcclComm comm = nullptr;
  NcclConfig config;
  config.blocking = 0;
  const NcclResult result =
      nccl_->Join(&comm, static_cast<int>(ranks.size()), id, index, &config);
  const auto joining = [&] { return absl::StrCat("joining ", NameOf(ranks)); };
  if (comm == nullptr) {
    PARTITA_RETURN_IF_ERROR(nccl_->Check(result, joining()));
    return absl::InternalError(absl::StrCat(joining(), ": NCCL made none"));
  }
  groups_[{lane, ranks}] = comm;
  PARTITA_RETURN_IF_ERROR(Settle(comm, result, joining));
  return comm;
}

absl::Status NcclGroups::Settle(NcclComm comm, NcclResult result,
                                const std::function<std::string()>& doing) {
  if (result == kNcclSuccess) return absl::OkStatus();
  const Clock::time_point begin = Clock::now();
  for (int round = 0; result == kNcclInProgress; ++round) {
    const NcclResult asked = nccl_->AsyncError(comm, &result);
    if (asked != kNcclSuccess) result = asked;
    if (result != kNcclInProgress || round < kRounds) continue;
    PARTITA_RETURN_IF_ERROR(base_.Progress());
    if (Clock::now() - begin > timeout_)
      return absl::DeadlineExceededError(absl::StrCat(
          doing(), " did not end within ", timeout_.count(),
          " ms; if all ranks are alive and slow, raise --timeout"));
    std::this_thread::sleep_for(kPause);
  }
  return nccl_->Check(result, result == kNcclSuccess ? "" : doing());
}

absl::Status NcclGroups::Check() {
  for (const auto& [key, comm] : groups_) {
    NcclResult error = kNcclSuccess;
    const NcclResult asked = nccl_->AsyncError(comm, &error);
    if (asked != kNcclSuccess) error = asked;
    if (error != kNcclSuccess && error != kNcclInProgress)
      return nccl_->Check(error,
                          absl::StrCat("exchanging in ", NameOf(key.second)));
  }
  return absl::OkStatus();
}

absl::Status NcclGroups::GiveUp(const absl::Status& status) {
  Abort();
  if (absl::IsDeadlineExceeded(status)) {
    // Agree names the ranks that are gone.
    const absl::Status agreed = base_.Agree(status, 1);
    const std::string own(status.message()), found(agreed.message());
    if (agreed.ok() || found.find(own) != std::string::npos) return status;
    return absl::Status(agreed.code(), absl::StrCat(found, "; ", own));
  }
  const Clock::time_point begin = Clock::now();
  while (Clock::now() - begin < std::min(timeout_, kGrace)) {
    const absl::Status known = base_.Progress();
    if (!known.ok()) return known;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return status;
}

}  // namespace partita::cuda
