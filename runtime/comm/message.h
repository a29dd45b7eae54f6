// Builds collectives from sends and receives of messages.
#ifndef PARTITA_RUNTIME_COMM_MESSAGE_H_
#define PARTITA_RUNTIME_COMM_MESSAGE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/comm/communicator.h"

namespace partita::comm {

// Messages of a stream between two ranks arrive in the order in which they were
// sent.
class Transport {
 public:
  using Request = void*;

  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // "rank 3 (node07, process 4711)"
  virtual std::string Describe(int rank) const = 0;

  // Messages of different streams are unordered.
  enum class Stream { kCollectives = 0, kTransfers, kBeside };

  // True if several threads may use the transport, one at a time.
  virtual bool ServesSeveralThreads() const { return true; }

  // Begin and return at once. The memory must stay valid until the request is
  // done. A message and its receive have the same size and stream.
  virtual absl::StatusOr<Request> Send(const void* data, int64_t bytes, int to,
                                       Stream stream) = 0;
  virtual absl::StatusOr<Request> Receive(void* data, int64_t bytes, int from,
                                          Stream stream) = 0;
  // Returns true if a request is done, and frees it.
  virtual absl::StatusOr<bool> Test(Request request) = 0;

  // Signs travel beside the messages. Each is a number below size() + 2, sent
  // without waiting.
  struct Sign {
    int number;
    int rank;  // who sent it
  };
  virtual absl::Status SendSign(int number, int to) = 0;
  // The next sign that has arrived, if any.
  virtual absl::StatusOr<std::optional<Sign>> NextSign() = 0;

  // OK unless some rank is known to have failed.
  virtual absl::Status Health() = 0;
  // Tells the others, if the transport can.
  virtual void Fail(const absl::Status& status) = 0;
};

std::unique_ptr<Communicator> MakeMessageCommunicator(
    std::unique_ptr<Transport> transport, const CommOptions& options = {});

}  // namespace partita::comm

#endif  // PARTITA_RUNTIME_COMM_MESSAGE_H_
