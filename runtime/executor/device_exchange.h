// Runs collectives and transfers among devices as stream work: in order on the
// compute stream, or on separate streams that events fork from and join with
// the compute stream.
#ifndef PARTITA_RUNTIME_EXECUTOR_DEVICE_EXCHANGE_H_
#define PARTITA_RUNTIME_EXECUTOR_DEVICE_EXCHANGE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/comm/device_communicator.h"
#include "runtime/device/device.h"

namespace partita::executor {

// The host waits in Synchronize only, and all other calls may be captured,
// unless hosts meet (MeetsOnHosts).
class DeviceExchange {
 public:
  // `device` and `communicator` must outlive this object.
  DeviceExchange(device::Device& device, comm::DeviceCommunicator& communicator)
      : device_(device), communicator_(communicator) {}

  // If `started`, the operation is run by Start (transfers always are), else by
  // Run. Returns null, on all ranks, if the operation must go through host
  // memory.
  absl::StatusOr<std::unique_ptr<comm::Collective>> Prepare(
      const comm::Operation& operation, const std::vector<int>& ranks,
      bool started);

  // True if the hosts wait for each other in Run and Await
  // (DeviceCommunicator::MeetsOnHosts).
  bool MeetsOnHosts() const { return communicator_.MeetsOnHosts(); }

  // Begins a pass over a program: forgets all started operations.
  void Begin();
  absl::Status Run(device::Stream& stream, comm::Collective& collective,
                   const void* input, void* output);
  // Same as DeviceCommunicator::EnqueueRows.
  absl::Status RunRows(device::Stream& stream, comm::Collective& collective,
                       const void* input, const void* to, void* output);
  // Starts the operation; `token` names it. It begins after all work that is on
  // `stream` now. A collective also begins after all earlier ones, a transfer
  // after earlier ones from the same sender to the same receiver.
  absl::Status Start(device::Stream& stream, comm::Collective& collective,
                     const void* input, void* output, int64_t token);
  // Makes later work on `stream` wait for the operation named `token`.
  absl::Status Await(device::Stream& stream, int64_t token);

  // The host waits for `stream` and for all started collectives, as in
  // DeviceCommunicator::Await, but not for transfers that were never awaited.
  absl::Status Synchronize(device::Stream& stream);

 private:
  absl::Status MakeStream(std::unique_ptr<device::Stream>& stream);

  device::Device& device_;
  comm::DeviceCommunicator& communicator_;
  // Stream of started collectives; null: there are none.
  std::unique_ptr<device::Stream> beside_;
  // Streams of transfers, by sender and receiver, so that neither direction
  // waits for the other.
  std::map<std::vector<int>, std::unique_ptr<device::Stream>> transfers_;
  std::unique_ptr<device::Event> begun_;
  std::map<int64_t, std::unique_ptr<device::Event>> done_;  // by token
  std::map<int64_t, comm::Collective*> to_join_;  // by token, where hosts meet
  std::vector<std::unique_ptr<device::Event>> unused_;
};

}  // namespace partita::executor

#endif  // PARTITA_RUNTIME_EXECUTOR_DEVICE_EXCHANGE_H_
