// Runs collectives on device memory as stream work.
#ifndef PARTITA_RUNTIME_COMM_DEVICE_COMMUNICATOR_H_
#define PARTITA_RUNTIME_COMM_DEVICE_COMMUNICATOR_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/comm/communicator.h"

namespace partita::comm {

// One rank's endpoint, in addition to its Communicator. Every rank of a group
// prepares and enqueues the group's operations in the same order. Used by one
// thread at a time.
class DeviceCommunicator {
 public:
  virtual ~DeviceCommunicator() = default;

  // Same as Communicator::Prepare. Returns null, on all ranks of the group, if
  // the operation must go through host memory. Operations with `beside` are
  // unordered with respect to others, like operations of a Communicator's
  // second endpoint. Each of both kinds uses a single stream.
  // Transfers are never null and use one stream per sender and receiver. On
  // both sides a transfer ends once the other side has begun it; the sender's
  // memory must stay valid until then. Preparing the first transfer of two
  // ranks waits for the other rank.
  virtual absl::StatusOr<std::unique_ptr<Collective>> Prepare(
      const Operation& operation, const std::vector<int>& ranks,
      bool beside) = 0;
  // Enqueues the operation on a native stream of the device's library; `input`
  // and `output` are device memory. The stream may be captured
  // (device::Device::Capture), but only on all ranks of the group together, and
  // the collective must outlive the graph.
  // If MeetsOnHosts(), a collective must be destroyed before the communicator
  // and before its memory. Its destructor waits, at most for the timeout, until
  // no other rank reads or writes that memory; on ranks that have not reached
  // the operation yet, it then fails.
  virtual absl::Status Enqueue(Collective& collective, const void* input,
                               void* output, void* stream) = 0;
  // Runs kSendRows or kReturnRows, with `to` in device memory, too. The host
  // waits for earlier work on the stream, because it must know how many rows
  // move, so nothing is captured.
  virtual absl::Status EnqueueRows(Collective& collective, const void* input,
                                   const void* to, void* output, void* stream) {
    return absl::UnimplementedError("rows move through host memory here");
  }
  // True if the hosts of the ranks wait for each other. Then nothing is
  // captured, and Enqueue of an in-order operation waits until the group's
  // other ranks have called it, at most the timeout without their progress.
  // Enqueue of transfers and `beside` operations returns at once; later work on
  // a stream sees their results only after Join.
  virtual bool MeetsOnHosts() const { return false; }
  // If MeetsOnHosts(): makes later work on `stream` wait for the oldest
  // enqueued run of this collective that is not joined yet. Waits for other
  // ranks as Enqueue does. Internal if all runs are joined.
  virtual absl::Status Join(Collective& collective, void* stream) {
    return absl::UnimplementedError("hosts do not meet here");
  }
  // Waits for the stream, at most for the timeout. Then DeadlineExceeded names
  // the rank that does not arrive or, if all arrive, the device that does not
  // finish. If a rank failed, returns its error.
  virtual absl::Status Await(void* stream) = 0;
};

}  // namespace partita::comm

#endif  // PARTITA_RUNTIME_COMM_DEVICE_COMMUNICATOR_H_
