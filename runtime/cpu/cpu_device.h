// The CPU as a device. Streams run inline, kernels run on libgomp's threads,
// and oneDNN computes matrix products and convolutions.
#ifndef PARTITA_RUNTIME_CPU_CPU_DEVICE_H_
#define PARTITA_RUNTIME_CPU_CPU_DEVICE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "runtime/device/device.h"

namespace partita::cpu {

struct CpuOptions {
  int threads = 0;  // 0: one per processor available to the process
};

// InvalidArgument if `threads` is negative.
absl::StatusOr<std::unique_ptr<device::Device>> MakeCpuDevice(
    const CpuOptions& options = {});

}  // namespace partita::cpu

#endif  // PARTITA_RUNTIME_CPU_CPU_DEVICE_H_
