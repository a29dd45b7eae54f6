// Collectives and transfers among devices as work of streams: in place, or
// started on streams of their own, which events join with the one that
// computes.
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

// The host waits in Synchronize alone, and the rest may be captured, unless
// hosts meet.
class DeviceExchange {
 public:
  // Both outlive it.
  DeviceExchange(device::Device& device, comm::DeviceCommunicator& communicator)
      : device_(device), communicator_(communicator) {}

  // `started`: for Start, as transfers are, else for Run. Null, on all ranks,
  // where the operation must go through the host's memory.
  absl::StatusOr<std::unique_ptr<comm::Collective>> Prepare(
      const comm::Operation& operation, const std::vector<int>& ranks,
      bool started);

  // Whether hosts meet where ranks do (DeviceCommunicator::MeetsOnHosts): in
  // Run, and in Await.
  bool MeetsOnHosts() const { return communicator_.MeetsOnHosts(); }

  // Nothing is started any more: a pass over a program begins.
  void Begin();
  absl::Status Run(device::Stream& stream, comm::Collective& collective,
                   const void* input, void* output);
  // The operation begins when what is on `stream` by now is done, and
  // collectives those before them, transfers those from the same sender to the
  // same receiver; `token` names it.
  absl::Status Start(device::Stream& stream, comm::Collective& collective,
                     const void* input, void* output, int64_t token);
  // What comes on `stream` later waits for it.
  absl::Status Await(device::Stream& stream, int64_t token);

  // The host waits for all of it but transfers that are not awaited, as
  // DeviceCommunicator::Await does.
  absl::Status Synchronize(device::Stream& stream);

 private:
  absl::Status MakeStream(std::unique_ptr<device::Stream>& stream);

  device::Device& device_;
  comm::DeviceCommunicator& communicator_;
  std::unique_ptr<device::Stream> beside_;  // null: no collective is started
  // Of transfers, by sender and receiver: neither direction waits for the
  // other.
  std::map<std::vector<int>, std::unique_ptr<device::Stream>> transfers_;
  std::unique_ptr<device::Event> begun_;
  std::map<int64_t, std::unique_ptr<device::Event>> done_;  // by token
  std::map<int64_t, comm::Collective*> to_join_;  // by token, where hosts meet
  std::vector<std::unique_ptr<device::Event>> unused_;
};

}  // namespace partita::executor

#endif  // PARTITA_RUNTIME_EXECUTOR_DEVICE_EXCHANGE_H_
