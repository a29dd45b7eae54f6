// Where ranks that are threads of one process meet to do something together on
// memory that all of them reach. Each says what it brings, and goes on or
// waits; who comes last does it for all.
#ifndef PARTITA_RUNTIME_CUDA_MEETINGS_H_
#define PARTITA_RUNTIME_CUDA_MEETINGS_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/comm/communicator.h"

namespace partita::cuda {

// Shared by all ranks, used by all their threads.
class Meetings {
 public:
  Meetings(int ranks, std::chrono::milliseconds timeout)
      : timeout_(timeout), ranks_(static_cast<size_t>(ranks)) {}
  Meetings(const Meetings&) = delete;

  // Meetings of one lane and group are held in the order in which members come,
  // and stand in no order with others.
  enum class Lane { kInPlace, kBeside, kTransfers };
  // What a member brings.
  struct Posting {
    const char* input = nullptr;
    char* output = nullptr;
    // When its memory is ready: what the one who comes last waits for.
    std::shared_ptr<void> ready;
    // Of its operation, that all are at the same; none: it did not come yet.
    uint64_t fingerprint = 0;
    std::shared_ptr<const std::string> description;
  };
  class Meeting;
  // Does it, for the member that came last; returns what the others wait for.
  using Hold = std::function<absl::StatusOr<std::shared_ptr<void>>(
      const std::vector<Posting>& postings)>;

  // A rank takes part; `base` says how it fares, until it leaves.
  void Join(comm::Communicator& base);
  // It takes no part any more: no host touches what it brought, but one that
  // the driver has kept for longer than the timeout in a call of `hold`. What
  // was put on streams before may still run.
  void Leave(int rank);

  // Rank `base.rank()` comes to the next meeting of the lane and group. Never
  // waits for other ranks; `hold` is called, or is not, before it returns. An
  // error if any rank has failed or members are at different operations.
  absl::StatusOr<std::shared_ptr<Meeting>> Come(comm::Communicator& base,
                                                Lane lane,
                                                const std::vector<int>& ranks,
                                                Posting posting,
                                                const Hold& hold);
  // Waits until the meeting is held: what `hold` returned. DeadlineExceeded
  // after `timeout_factor` times the timeout, naming who does not come while it
  // is not waiting itself, or who holds it and does not come back; or the error
  // of a rank that failed.
  absl::StatusOr<std::shared_ptr<void>> Await(comm::Communicator& base,
                                              Meeting& meeting,
                                              int timeout_factor = 1);
  // As Leave, of one meeting to which the rank came: what `hold` returned if it
  // is held, else an error, of all ranks from now on.
  absl::StatusOr<std::shared_ptr<void>> Quit(int rank, Meeting& meeting);

  // The error of a rank that failed; to be asked by `hold` between its calls of
  // the driver, since what others brought may be gone then.
  absl::Status Check(int rank) const;
  // The first failure is everybody's from now on.
  void Fail(const absl::Status& status);

 private:
  struct Group {
    std::deque<std::shared_ptr<Meeting>> open;  // not held yet
    int64_t first = 0;                          // number of the first of them
    std::vector<int64_t> next;                  // by member
  };
  struct Rank {
    comm::Communicator* base = nullptr;  // null: it takes no part
    const Meeting* awaits = nullptr;     // where it waits
    int64_t came = 0;                    // to so many meetings
  };
  using Lock = std::unique_lock<std::mutex>;

  absl::Status FailureOf(int rank) const;
  void FailLocked(const absl::Status& status);
  // Waits while it is being held. DeadlineExceeded after the timeout.
  absl::Status AwaitHolder(Lock& lock, const Meeting& meeting, int rank,
                           std::chrono::milliseconds timeout);
  absl::Status QuitLocked(Lock& lock, int rank, const Meeting& meeting);
  // Members that did not come, or of those the ones that do not wait
  // themselves, and what they have done so far.
  struct Missing {
    std::vector<int> ranks;
    bool idle = false;
    uint64_t progress = 0;
  };
  Missing MissingOf(const Meeting& meeting) const;
  absl::Status TimeOut(const Meeting& meeting, const Missing& missing, int rank,
                       std::chrono::milliseconds timeout) const;

  const std::chrono::milliseconds timeout_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Rank> ranks_;
  std::map<std::pair<Lane, std::vector<int>>, Group> groups_;
  absl::Status failure_;
};

}  // namespace partita::cuda

#endif  // PARTITA_RUNTIME_CUDA_MEETINGS_H_
