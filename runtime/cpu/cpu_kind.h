// The CPU in the runtime's list of devices.
#ifndef PARTITA_RUNTIME_CPU_CPU_KIND_H_
#define PARTITA_RUNTIME_CPU_CPU_KIND_H_

#include "runtime/device/device_kind.h"

namespace partita::cpu {

// Runs code for the target "cpu". Ranks exchange tensors through host memory.
device::DeviceKind CpuKind();

}  // namespace partita::cpu

#endif  // PARTITA_RUNTIME_CPU_CPU_KIND_H_
