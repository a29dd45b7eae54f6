// How the ranks of a program exchange tensors.
#ifndef PARTITA_RUNTIME_COMM_COMMUNICATOR_H_
#define PARTITA_RUNTIME_COMM_COMMUNICATOR_H_

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/comm/operation.h"

namespace partita::comm {

struct CommOptions {
  // How long a rank waits for another that makes no progress.
  std::chrono::milliseconds timeout{60000};
};

// PARTITA_COMM_TIMEOUT, in seconds, where it is set and makes sense.
CommOptions OptionsFromEnvironment();

// An operation over a group, ready to be run many times.
class Collective {
 public:
  Collective(Operation operation, std::vector<int> ranks, int index);
  virtual ~Collective() = default;

  const Operation& operation() const { return operation_; }
  const std::vector<int>& ranks() const { return ranks_; }
  int index() const { return index_; }  // of this rank in the group
  int group_size() const { return static_cast<int>(ranks_.size()); }
  uint64_t fingerprint() const { return fingerprint_; }

 private:
  const Operation operation_;
  const std::vector<int> ranks_;
  const int index_;
  const uint64_t fingerprint_;
};

// DeadlineExceeded: that `who` did not arrive within the time, what else is
// known of it, and what to do.
absl::Status DidNotArrive(const std::string& who, const Collective& collective,
                          std::chrono::milliseconds timeout,
                          const std::string& more = "");

// InternalError: that the receiver of a transfer got another one.
absl::Status WrongTransfer(const Collective& transfer,
                           const std::string& found);

// One rank's end. Every rank of a group runs the group's operations in the same
// order; transfers between two ranks stand in no order with their other
// operations. Used by one thread at a time, except Beats.
//
// No call waits longer than the timeout for a rank that makes no progress: it
// returns DeadlineExceeded, naming that rank and the operation it was expected
// at. After any error all later calls of all ranks fail (Aborted, with the
// first error), so that everyone ends within the same time.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Who a rank is, for messages: "rank 3", with host and process where that
  // helps.
  virtual std::string Describe(int rank) const = 0;

  // `ranks` lists the group in the order of its indices and holds this rank
  // once. Makes room for what Run needs.
  virtual absl::StatusOr<std::unique_ptr<Collective>> Prepare(
      Operation operation, std::vector<int> ranks) = 0;
  // `input` and `output` hold the operation's bytes in host memory; of a
  // transfer the sender's output and the receiver's input are not looked at.
  // Returns when the output is there and the input may be overwritten.
  virtual absl::Status Run(Collective& collective, const void* input,
                           void* output) = 0;

  // A transfer on its receiver's side in two parts, for which Run is both: from
  // Expect on `output` may be written to, and when Await has returned, it has
  // been. Those of one sender are expected, and awaited, in the order in which
  // they are sent.
  virtual absl::Status Expect(Collective& transfer, void* output);
  virtual absl::Status Await(Collective& transfer, void* output);
  // Nothing is expected any more. Among threads nothing writes to what was;
  // messages still may, until the process ends, as a failed one soon does.
  virtual void Abandon() {}

  // A second end of this rank, for another thread of it, whose operations stand
  // in no order with those of this end: they meet those of other ranks' second
  // ends. Null where the network serves one thread only; then it is so for all
  // ranks. At most one at a time; must not outlive this end, whose failure ends
  // its waits. It waits however long: whoever needs what it does waits with
  // WaitFor.
  virtual std::unique_ptr<Communicator> MakeBeside() = 0;
  // Waits until what runs at `beside` is done: calls `done` again and again,
  // which waits up to the given time and says whether it is. An error if a rank
  // that `beside` waits for makes no progress for the timeout.
  using Done = std::function<bool(std::chrono::milliseconds)>;
  virtual absl::Status WaitFor(Communicator& beside, const Done& done) = 0;

  // This rank is at work: others do not time out with it, if it says so
  // more often than the timeout is long. OK unless some rank has failed.
  virtual absl::Status Progress() = 0;
  // Changes with every sign of life of this rank; any thread may ask.
  virtual uint64_t Beats() const = 0;
  // Tells the others that this rank gives up, and why.
  virtual void Fail(const absl::Status& status) = 0;

  // All ranks call it: what each passes, by rank, cut to kTextBytes and to the
  // first zero. `what` names it in messages. Ranks wait `timeout_factor` times
  // longer than usual: they may come from work of very different length.
  static constexpr size_t kTextBytes = 2047;
  absl::StatusOr<std::vector<std::string>> GatherTexts(const std::string& own,
                                                       const std::string& what,
                                                       int timeout_factor = 10);

  // All ranks call it; OK if all pass OK, else the status of the lowest rank
  // that does not, with its name unless all fail. Timeout as above.
  absl::Status Agree(const absl::Status& status, int timeout_factor = 10);
  // Whether the last Agree returned an error, so that all ranks know it.
  bool agreed() const { return agreed_; }

 private:
  bool agreed_ = false;
};

}  // namespace partita::comm

#endif  // PARTITA_RUNTIME_COMM_COMMUNICATOR_H_
