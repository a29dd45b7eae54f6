// Rendezvous of ranks that are threads of one process and share memory. Each
// rank posts its buffers, then continues or waits. The last rank to arrive runs
// the operation for all.
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

// All meetings of a set of ranks. Shared by all ranks and their threads.
class Meetings {
 public:
  Meetings(int ranks, std::chrono::milliseconds timeout)
      : timeout_(timeout), ranks_(static_cast<size_t>(ranks)) {}
  Meetings(const Meetings&) = delete;

  // Meetings of one lane and group of ranks happen in the order in which
  // members arrive. They are unordered with respect to other lanes and groups.
  enum class Lane { kInPlace, kBeside, kTransfers };
  // The buffers and the operation that a member posts.
  struct Posting {
    const char* input = nullptr;
    char* output = nullptr;
    // An event that marks when the memory is ready. The last member to arrive
    // waits for it.
    std::shared_ptr<void> ready;
    // Fingerprint of the operation, to check that all members run the same one.
    // `description` is null until the member arrives.
    uint64_t fingerprint = 0;
    std::shared_ptr<const std::string> description;
  };
  class Meeting;
  // Runs the operation for all members; called by the last to arrive. Returns
  // the event for which the others wait.
  using Hold = std::function<absl::StatusOr<std::shared_ptr<void>>(
      const std::vector<Posting>& postings)>;

  // Adds a rank. `base` reports its state and must live until it leaves.
  void Join(comm::Communicator& base);
  // Removes a rank. Afterwards no host uses the buffers that it posted, except
  // a host that the driver has kept in a call of `hold` for longer than the
  // timeout. Work already on streams may still run.
  void Leave(int rank);

  // Rank `base.rank()` arrives at the next meeting of the lane and group. Never
  // waits for other ranks. The last to arrive calls `hold` before this returns.
  // An error if any rank has failed or members post different operations.
  absl::StatusOr<std::shared_ptr<Meeting>> Arrive(comm::Communicator& base,
                                                  Lane lane,
                                                  const std::vector<int>& ranks,
                                                  Posting posting,
                                                  const Hold& hold);
  // Waits until the operation was run, and returns the result of `hold`.
  // DeadlineExceeded after `timeout_factor` times the timeout. The message
  // names the members that did not arrive and are not waiting themselves, or
  // the member whose `hold` did not return. Returns the error if a rank failed.
  absl::StatusOr<std::shared_ptr<void>> Await(comm::Communicator& base,
                                              Meeting& meeting,
                                              int timeout_factor = 1);
  // Withdraws from one meeting at which the rank arrived. Returns the result of
  // `hold` if the operation was run. Else the error is also the error of all
  // ranks from now on.
  absl::StatusOr<std::shared_ptr<void>> Quit(int rank, Meeting& meeting);

  // Returns the error of a failed rank. `hold` calls it between driver calls,
  // because other members' buffers may be gone after a failure.
  absl::Status Check(int rank) const;
  // Records a failure. All ranks fail with the first one.
  void Fail(const absl::Status& status);

 private:
  struct Group {
    std::deque<std::shared_ptr<Meeting>> open;  // not run yet
    int64_t first = 0;                          // number of open.front()
    std::vector<int64_t> next;  // number of the next meeting, by member
  };
  struct Rank {
    comm::Communicator* base = nullptr;  // null: it has left
    const Meeting* awaits = nullptr;     // the meeting for which it waits
    int64_t came = 0;                    // number of meetings it arrived at
  };
  using Lock = std::unique_lock<std::mutex>;

  absl::Status FailureOf(int rank) const;
  void FailLocked(const absl::Status& status);
  // Waits while `hold` runs. DeadlineExceeded after the timeout.
  absl::Status AwaitHolder(Lock& lock, const Meeting& meeting, int rank,
                           std::chrono::milliseconds timeout);
  absl::Status QuitLocked(Lock& lock, int rank, const Meeting& meeting);
  // Members that did not arrive, and their progress. If some of them are not
  // waiting elsewhere (`idle`), `ranks` lists only these.
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
