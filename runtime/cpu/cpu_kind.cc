// Describes the CPU to the runtime's list of devices.
#include "runtime/cpu/cpu_kind.h"

#include "runtime/cpu/cpu_device.h"
#include "runtime/program/target.h"

namespace partita::cpu {

device::DeviceKind CpuKind() {
  device::DeviceKind kind;
  kind.name = "cpu";
  kind.targets = {program::kCpuTarget};
  kind.make = [](const device::JobOptions& job, int index, int threads) {
    return MakeCpuDevice({threads});
  };
  return kind;
}

}  // namespace partita::cpu
