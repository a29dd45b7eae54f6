// Runs collectives and transfers of devices with memory of their own through a
// communicator on host memory.
#ifndef PARTITA_RUNTIME_EXECUTOR_HOST_EXCHANGE_H_
#define PARTITA_RUNTIME_EXECUTOR_HOST_EXCHANGE_H_

#include <cstdint>
#include <cstdlib>
#include <memory>

#include "absl/status/status.h"
#include "runtime/comm/communicator.h"
#include "runtime/device/device.h"

namespace partita::executor {

class HostExchange {
 public:
  // Allocates host memory for an operation. ResourceExhausted if there is none.
  absl::Status Reserve(const comm::Operation& operation);

  // Same as Communicator::Run, with device pointers. Waits for all work on the
  // stream; later work on the stream sees the output.
  absl::Status Run(comm::Communicator& communicator,
                   comm::Collective& collective, device::Device& device,
                   device::Stream& stream, const void* input, void* output);
  // Same as Communicator::RunRows, with device pointers.
  absl::Status RunRows(comm::Communicator& communicator,
                       comm::Collective& collective, device::Device& device,
                       device::Stream& stream, const void* input,
                       const void* to, void* output);

 private:
  struct Memory {
    struct Free {
      void operator()(char* data) const { std::free(data); }
    };
    std::unique_ptr<char, Free> data;
    int64_t bytes = 0;
    absl::Status Reserve(int64_t wanted);
  };
  Memory input_, output_;
  Memory to_;  // destinations of rows
};

}  // namespace partita::executor

#endif  // PARTITA_RUNTIME_EXECUTOR_HOST_EXCHANGE_H_
