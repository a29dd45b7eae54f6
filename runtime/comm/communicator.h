// The interface through which ranks of a program exchange tensors.
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

// Reads PARTITA_COMM_TIMEOUT, in seconds; the default if unset or invalid.
CommOptions OptionsFromEnvironment();

// An operation over a group, prepared once and run many times.
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

// DeadlineExceeded: `who` did not arrive within the timeout; `more` adds
// further facts. The message says what to do.
absl::Status DidNotArrive(const std::string& who, const Collective& collective,
                          std::chrono::milliseconds timeout,
                          const std::string& more = "");

// InternalError: the receiver of a transfer got a different one.
absl::Status WrongTransfer(const Collective& transfer,
                           const std::string& found);

// One rank's endpoint. Every rank of a group runs the group's operations in the
// same order; transfers are unordered with respect to the other operations of
// their two ranks. Used by one thread at a time, except Beats.
//
// A call waits at most the timeout for a rank that makes no progress. It then
// returns DeadlineExceeded, which names that rank and the operation that it was
// expected at. After any error, all later calls of all ranks fail (Aborted,
// with the first error), so that all ranks end within the same time.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Name of a rank in messages: "rank 3", with host and process if that helps.
  virtual std::string Describe(int rank) const = 0;

  // Prepares an operation and allocates what Run needs. `ranks` lists the group
  // in the order of its indices and contains this rank once.
  virtual absl::StatusOr<std::unique_ptr<Collective>> Prepare(
      Operation operation, std::vector<int> ranks) = 0;
  // Runs the operation. `input` and `output` hold its bytes in host memory. For
  // a transfer, the sender's output and the receiver's input are ignored.
  // Returns when the output is complete and the input may be overwritten.
  virtual absl::Status Run(Collective& collective, const void* input,
                           void* output) = 0;
  // Runs kSendRows or kReturnRows; `to` holds the operation's `size`
  // destinations. ResourceExhausted if a member receives more rows than fit.
  virtual absl::Status RunRows(Collective& collective, const void* input,
                               const int64_t* to, void* output);

  // The receiver's side of a transfer in two parts; Run does both. After
  // Expect, `output` may be written to at any time; once Await returns, it is
  // complete. Transfers of one sender are expected, and awaited, in the order
  // in which they are sent.
  virtual absl::Status Expect(Collective& transfer, void* output);
  virtual absl::Status Await(Collective& transfer, void* output);
  // Cancels all expectations. Threads stop writing to the expected memory at
  // once. Messages may still write to it until the process ends, as it soon
  // does after a failure.
  virtual void Abandon() {}

  // Makes a second endpoint of this rank for another thread. Its operations
  // meet those of the other ranks' second endpoints, unordered with respect to
  // this endpoint. Null, on all ranks, if the network serves one thread only.
  // At most one at a time; it must not outlive this endpoint, whose failure
  // ends its waits. It has no timeout: the thread that needs its results calls
  // WaitFor.
  virtual std::unique_ptr<Communicator> MakeBeside() = 0;
  // Waits until work at `beside` is done. Calls `done` repeatedly; `done` waits
  // up to the given time and returns true once the work is done. Fails if a
  // rank that `beside` waits for makes no progress for the timeout.
  using Done = std::function<bool(std::chrono::milliseconds)>;
  virtual absl::Status WaitFor(Communicator& beside, const Done& done) = 0;

  // Reports that this rank is working. Others do not time out while it is
  // called more often than once per timeout. OK unless some rank has failed.
  virtual absl::Status Progress() = 0;
  // Changes with every sign of life of this rank; any thread may call it.
  virtual uint64_t Beats() const = 0;
  // Tells the others that this rank fails, and why.
  virtual void Fail(const absl::Status& status) = 0;

  // Collective over all ranks: returns each rank's text, by rank, cut to
  // kTextBytes and at the first zero byte. `what` names the texts in messages.
  // Waits `timeout_factor` times longer than usual, since ranks may come from
  // work of very different length.
  static constexpr size_t kTextBytes = 2047;
  absl::StatusOr<std::vector<std::string>> GatherTexts(const std::string& own,
                                                       const std::string& what,
                                                       int timeout_factor = 10);

  // Collective over all ranks. OK if all pass OK, else the status of the lowest
  // rank that does not, with its name unless all fail. Waits as GatherTexts
  // does.
  absl::Status Agree(const absl::Status& status, int timeout_factor = 10);
  // True if the last Agree returned an error, so that all ranks know it.
  bool agreed() const { return agreed_; }

 private:
  bool agreed_ = false;
};

}  // namespace partita::comm

#endif  // PARTITA_RUNTIME_COMM_COMMUNICATOR_H_
