// Operations that run beside what their rank does.
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

// A thread that runs operations at a communicator's second end, one after
// another in the order in which they are started. All ranks of a group start
// the group's operations in the same order. Where there is no second end they
// run where they are started. Used by the communicator's thread.
class StartedOperations {
 public:
  // The communicator outlives it and has no other second end.
  explicit StartedOperations(Communicator& communicator);
  // Operations that were not awaited are given up, and with them the
  // communicator.
  ~StartedOperations();
  StartedOperations(const StartedOperations&) = delete;
  StartedOperations& operator=(const StartedOperations&) = delete;

  // Operations of Start must be prepared here, and live as long as this.
  absl::StatusOr<std::unique_ptr<Collective>> Prepare(Operation operation,
                                                      std::vector<int> ranks);

  // Returns at once with the operation's number: 1, 2, ... As
  // Communicator::Run, but the input must stay as it is and the output is not
  // there until it is awaited.
  absl::StatusOr<int64_t> Start(Collective& collective, const void* input,
                                void* output);
  // Waits until this operation and all that were started before it are done. As
  // Communicator::Run, timeout counts from here. After an error all later
  // calls fail.
  absl::Status Await(int64_t number);
  // The number of the operation that was started last; 0 if there is none.
  int64_t last() const { return last_; }

  // After a failure of this rank: gives up what is not done, and returns when
  // its thread uses no buffer any more (messages: as Communicator::Abandon).
  void GiveUp(const absl::Status& status);

 private:
  struct Job {
    Collective* collective;
    const void* input;
    void* output;
  };
  void Work();

  Communicator& communicator_;
  const std::unique_ptr<Communicator> beside_;  // null: there is none
  int64_t last_ = 0;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;  // not begun
  int64_t done_ = 0;
  bool busy_ = false;
  bool ending_ = false;
  absl::Status failure_;
  std::thread thread_;  // last: it uses all others
};

}  // namespace partita::comm

#endif  // PARTITA_RUNTIME_COMM_STARTED_H_
