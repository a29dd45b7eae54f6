// Collectives on memory of devices, as work of their streams.
#ifndef PARTITA_RUNTIME_COMM_DEVICE_COMMUNICATOR_H_
#define PARTITA_RUNTIME_COMM_DEVICE_COMMUNICATOR_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/comm/communicator.h"

namespace partita::comm {

// One rank's end, beside its Communicator. Every rank of a group prepares and
// enqueues the group's operations in the same order. Used by one thread at a
// time.
class DeviceCommunicator {
 public:
  virtual ~DeviceCommunicator() = default;

  // As Communicator::Prepare; null, on all ranks of the group, where such an
  // operation must go through the host's memory. Operations `beside` stand in
  // no order with the others, as those of a Communicator's second end; both
  // kinds are of one stream each. Transfers are never null, of one stream for
  // each sender and receiver, and on both sides work that ends when the other
  // has begun: the sender's memory must stay until then. Preparing the first of
  // two ranks waits for the other.
  virtual absl::StatusOr<std::unique_ptr<Collective>> Prepare(
      const Operation& operation, const std::vector<int>& ranks,
      bool beside) = 0;
  // Puts the operation on a stream of the device, as the device's library names
  // it; `input` and `output` are the device's memory. The stream may be
  // captured (device::Device::Capture): then it is so on all ranks of the
  // group, and the collective outlives the graph. Where hosts meet, collectives
  // end before the communicator and before the memory that they were given: a
  // collective that ends waits, no longer than the timeout, until no other
  // rank reads or writes that memory, and what others have not come to yet is
  // an error of theirs.
  virtual absl::Status Enqueue(Collective& collective, const void* input,
                               void* output, void* stream) = 0;
  // Whether hosts meet where ranks do: then nothing is captured, and a call of
  // Enqueue in place waits until the group's other ranks have called it, never
  // longer than the timeout without their progress. Those `beside`, and all
  // transfers, return at once, and are there for what comes on a stream after
  // Join alone.
  virtual bool MeetsOnHosts() const { return false; }
  // Where hosts meet: what comes on `stream` later waits for the oldest of what
  // was enqueued of this collective and is not joined yet. Waits for other
  // ranks as above. Internal: all are joined.
  virtual absl::Status Join(Collective& collective, void* stream) {
    return absl::UnimplementedError("hosts do not meet here");
  }
  // Waits for the stream, but not for ever: DeadlineExceeded after the
  // timeout, naming the rank that does not come (if all come, the device that
  // does not finish), or the error of a rank that failed.
  virtual absl::Status Await(void* stream) = 0;
};

}  // namespace partita::comm

#endif  // PARTITA_RUNTIME_COMM_DEVICE_COMMUNICATOR_H_
