// One lock serves all groups: they are few, and nobody holds it while an
// operation runs.
#include "runtime/cuda/meetings.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace partita::cuda {
namespace {

using Clock = std::chrono::steady_clock;

// Interval at which a waiting rank checks for failed ranks.
constexpr std::chrono::milliseconds kSlice{20};

}  // namespace

// All fields are guarded by the lock, except `postings` while `hold` runs.
class Meetings::Meeting {
 public:
  explicit Meeting(std::vector<int> members)
      : ranks(std::move(members)), postings(ranks.size()) {}

  // The operation with which a rank arrived; null if it did not.
  const std::string* Brought(int rank) const {
    for (size_t i = 0; i < ranks.size(); ++i)
      if (ranks[i] == rank) return postings[i].description.get();
    return nullptr;
  }

  const std::vector<int> ranks;
  std::vector<Posting> postings;  // by member
  size_t came = 0;
  enum class Phase { kOpen, kBeingHeld, kHeld };
  Phase phase = Phase::kOpen;
  int holder = -1;                               // rank
  absl::StatusOr<std::shared_ptr<void>> result;  // set in kHeld
};

void Meetings::Join(comm::Communicator& base) {
  const Lock lock(mutex_);
  ranks_[static_cast<size_t>(base.rank())].base = &base;
}

void Meetings::Leave(int rank) {
  Lock lock(mutex_);
  ranks_[static_cast<size_t>(rank)].base = nullptr;
  std::vector<std::shared_ptr<Meeting>> open;  // at which it arrived
  for (const auto& [key, group] : groups_)
    for (const auto& meeting : group.open)
      if (meeting->Brought(rank) != nullptr) open.push_back(meeting);
  for (const auto& meeting : open)
    QuitLocked(lock, rank, *meeting).IgnoreError();
}

absl::StatusOr<std::shared_ptr<void>> Meetings::Quit(int rank,
                                                     Meeting& meeting) {
  Lock lock(mutex_);
  PARTITA_RETURN_IF_ERROR(QuitLocked(lock, rank, meeting));
  return meeting.result;
}

absl::Status Meetings::QuitLocked(Lock& lock, int rank,
                                  const Meeting& meeting) {
  absl::Status status;
  if (meeting.phase == Meeting::Phase::kOpen)
    status = absl::AbortedError(
        absl::StrCat("rank ", rank, " left before all ranks arrived at ",
                     *meeting.Brought(rank)));
  else
    status = AwaitHolder(lock, meeting, rank, timeout_);
  if (!status.ok()) FailLocked(status);
  return status;
}

absl::Status Meetings::AwaitHolder(Lock& lock, const Meeting& meeting, int rank,
                                   std::chrono::milliseconds timeout) {
  if (changed_.wait_for(lock, timeout, [&] {
        return meeting.phase != Meeting::Phase::kBeingHeld;
      }))
    return absl::OkStatus();
  return absl::DeadlineExceededError(absl::StrCat(
      "rank ", meeting.holder, " came last to ", *meeting.Brought(rank),
      " and did not get it to the GPU within ", timeout.count(), " ms (rank ",
      rank, " waited): the driver does not return from a call; if the GPU is ",
      "only slow, raise --timeout"));
}

absl::Status Meetings::Check(int rank) const {
  const Lock lock(mutex_);
  return FailureOf(rank);
}

absl::Status Meetings::FailureOf(int rank) const {
  if (failure_.ok()) return failure_;
  return absl::AbortedError(absl::StrCat(
      "rank ", rank, " was ended by another failure: ", failure_.message()));
}

void Meetings::FailLocked(const absl::Status& status) {
  if (failure_.ok()) failure_ = status;
  changed_.notify_all();
}

void Meetings::Fail(const absl::Status& status) {
  const Lock lock(mutex_);
  FailLocked(status);
}

absl::StatusOr<std::shared_ptr<Meetings::Meeting>> Meetings::Arrive(
    comm::Communicator& base, Lane lane, const std::vector<int>& ranks,
    Posting posting, const Hold& hold) {
  const int rank = base.rank();
  PARTITA_RETURN_IF_ERROR(base.Progress());
  Lock lock(mutex_);
  PARTITA_RETURN_IF_ERROR(FailureOf(rank));
  ++ranks_[static_cast<size_t>(rank)].came;
  Group& group = groups_[{lane, ranks}];
  group.next.resize(ranks.size());
  const size_t index = static_cast<size_t>(
      std::find(ranks.begin(), ranks.end(), rank) - ranks.begin());
  const size_t at = static_cast<size_t>(group.next[index]++ - group.first);
  if (at == group.open.size())
    group.open.push_back(std::make_shared<Meeting>(ranks));
  const std::shared_ptr<Meeting> meeting = group.open[at];
  for (size_t i = 0; i < ranks.size(); ++i) {
    const Posting& other = meeting->postings[i];
    if (other.description == nullptr ||
        other.fingerprint == posting.fingerprint)
      continue;
    const absl::Status status = absl::InternalError(
        absl::StrCat("rank ", rank, " arrived at ", *posting.description,
                     ", but rank ", ranks[i], " at ", *other.description));
    FailLocked(status);
    return status;
  }
  meeting->postings[index] = std::move(posting);
  if (++meeting->came < ranks.size()) return meeting;
  // All members have arrived at the earlier meetings, so those have been run.
  meeting->phase = Meeting::Phase::kBeingHeld;
  meeting->holder = rank;
  lock.unlock();
  absl::StatusOr<std::shared_ptr<void>> result = hold(meeting->postings);
  lock.lock();
  meeting->phase = Meeting::Phase::kHeld;
  if (!result.ok())
    FailLocked(absl::Status(
        result.status().code(),
        absl::StrCat("rank ", rank, ": ", result.status().message())));
  meeting->result = std::move(result);
  // The result now orders the memory; the ready events are no longer needed.
  for (Posting& one : meeting->postings) one.ready.reset();
  Group& same = groups_.at({lane, ranks});
  same.open.pop_front();
  ++same.first;
  lock.unlock();
  changed_.notify_all();
  if (!meeting->result.ok()) return meeting->result.status();
  return meeting;
}

Meetings::Missing Meetings::MissingOf(const Meeting& meeting) const {
  Missing missing;
  std::vector<int> idle;
  for (size_t i = 0; i < meeting.ranks.size(); ++i) {
    if (meeting.postings[i].description != nullptr) continue;
    const Rank& rank = ranks_[static_cast<size_t>(meeting.ranks[i])];
    missing.ranks.push_back(meeting.ranks[i]);
    missing.progress += static_cast<uint64_t>(rank.came) + 1;
    if (rank.awaits != nullptr) continue;
    idle.push_back(meeting.ranks[i]);
    if (rank.base != nullptr) missing.progress += rank.base->Beats();
  }
  missing.idle = !idle.empty();
  if (missing.idle) missing.ranks = std::move(idle);
  return missing;
}

absl::Status Meetings::TimeOut(const Meeting& meeting, const Missing& missing,
                               int rank,
                               std::chrono::milliseconds timeout) const {
  std::string names, elsewhere;
  for (const int other : missing.ranks) {
    absl::StrAppend(&names, names.empty() ? "" : ", ", "rank ", other);
    const Meeting* const awaits = ranks_[static_cast<size_t>(other)].awaits;
    if (awaits != nullptr)
      absl::StrAppend(&elsewhere, "; rank ", other, " waits at ",
                      *awaits->Brought(other));
  }
  return absl::DeadlineExceededError(absl::StrCat(
      names, " did not arrive at ", *meeting.Brought(rank), " within ",
      timeout.count(), " ms and made no progress (rank ", rank, " waited)",
      elsewhere, "; if it is alive and slow, raise --timeout"));
}

absl::StatusOr<std::shared_ptr<void>> Meetings::Await(comm::Communicator& base,
                                                      Meeting& meeting,
                                                      int timeout_factor) {
  const int rank = base.rank();
  const std::chrono::milliseconds limit = timeout_ * timeout_factor;
  Lock lock(mutex_);
  Rank& self = ranks_[static_cast<size_t>(rank)];
  const Meeting* const outer = std::exchange(self.awaits, &meeting);
  Clock::time_point since = Clock::now();
  uint64_t seen = 0;
  absl::Status status;
  while (status.ok() && meeting.phase != Meeting::Phase::kHeld) {
    changed_.wait_for(lock, kSlice);
    // The holder uses this rank's memory, so wait for it even if another rank
    // has failed.
    if (meeting.phase == Meeting::Phase::kBeingHeld) {
      status = AwaitHolder(lock, meeting, rank, limit);
      if (!status.ok()) FailLocked(status);
    }
    if (meeting.phase != Meeting::Phase::kOpen) continue;
    lock.unlock();
    const absl::Status known = base.Progress();
    lock.lock();
    if (meeting.phase != Meeting::Phase::kOpen) continue;
    status = known.ok() ? FailureOf(rank) : known;
    const Missing missing = MissingOf(meeting);
    if (missing.progress != seen) since = Clock::now();
    seen = missing.progress;
    // If all missing ranks are waiting themselves, a rank that waits for the
    // stalled rank directly should report it, so allow twice the time.
    if (status.ok() && Clock::now() - since > (missing.idle ? 1 : 2) * limit)
      status = TimeOut(meeting, missing, rank, limit);
    if (!status.ok()) FailLocked(status);
  }
  self.awaits = outer;
  PARTITA_RETURN_IF_ERROR(status);
  if (!meeting.result.ok()) return FailureOf(rank);
  return *meeting.result;
}

}  // namespace partita::cuda
