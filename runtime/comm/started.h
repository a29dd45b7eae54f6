// Operations that run while their rank does other work.
#ifndef PARTITA_RUNTIME_COMM_STARTED_H_
#define PARTITA_RUNTIME_COMM_STARTED_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/comm/communicator.h"

namespace partita::comm {

// A thread that runs operations at a communicator's second endpoint, one after
// another in the order in which they are started. All ranks of a group start
// the group's operations in the same order. Without a second endpoint,
// operations run where they are started. Used by the communicator's thread.
class StartedOperations {
 public:
  // The communicator must outlive this object and have no other second
  // endpoint.
  explicit StartedOperations(Communicator& communicator);
  // Cancels operations that were not awaited, which fails the communicator.
  ~StartedOperations();
  StartedOperations(const StartedOperations&) = delete;
  StartedOperations& operator=(const StartedOperations&) = delete;

  // Prepares an operation for Start; it must live as long as this object.
  absl::StatusOr<std::unique_ptr<Collective>> Prepare(Operation operation,
                                                      std::vector<int> ranks);

  // Starts an operation and returns at once with its number: 1, 2, ... Same as
  // Communicator::Run, but the input must not change and the output is not
  // complete before Await.
  absl::StatusOr<int64_t> Start(Collective& collective, const void* input,
                                void* output);
  // Same for Communicator::RunRows; `to` must not change before Await either.
  absl::StatusOr<int64_t> StartRows(Collective& collective, const void* input,
                                    const int64_t* to, void* output);
  // Waits until this operation and all operations started before it are done.
  // Like Communicator::Run, but the timeout counts from this call. After an
  // error all later calls fail.
  absl::Status Await(int64_t number);
  // Number of the last started operation; 0 if there is none.
  int64_t last() const { return last_; }

  // After a failure of this rank, cancels unfinished operations. Returns once
  // the thread uses no buffer any more (for messages, see
  // Communicator::Abandon).
  void GiveUp(const absl::Status& status);

 private:
  struct Job {
    Collective* collective;
    const void* input;
    const int64_t* to;  // of rows
    void* output;

    absl::Status RunAt(Communicator& communicator) const;
  };
  absl::StatusOr<int64_t> Start(const Job& job);
  void Work();

  Communicator& communicator_;
  // Null: there is no second endpoint.
  const std::unique_ptr<Communicator> beside_;
  int64_t last_ = 0;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;  // not begun
  int64_t done_ = 0;
  bool busy_ = false;
  bool ending_ = false;
  absl::Status failure_;
  std::thread thread_;  // last member: it uses all others
};

}  // namespace partita::comm

#endif  // PARTITA_RUNTIME_COMM_STARTED_H_
