// The list of devices that models can run on, and searches in it.
#ifndef PARTITA_RUNTIME_SESSION_DEVICES_H_
#define PARTITA_RUNTIME_SESSION_DEVICES_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "runtime/device/device_kind.h"

namespace partita::session {

using DeviceList = std::vector<device::DeviceKind>;

// All devices, in the order of messages and help. The first one gets programs
// whose target no device runs, and refuses them. Never changes.
const DeviceList& Devices();

// Internal, with the name, if two devices have one name or run one kind of
// target, or if a device has no name or no factory.
absl::Status CheckDevices(const DeviceList& devices);

// Null if no device has this name.
const device::DeviceKind* FindDevice(const DeviceList& devices,
                                     std::string_view name);
// The device that runs code for the target "KIND" or "KIND:ARCHITECTURE"; null
// if there is none.
const device::DeviceKind* FindDeviceOfTarget(const DeviceList& devices,
                                             std::string_view target);

// All devices, or devices that execute programs (DeviceKind::executes).
enum class DeviceSet { kAll, kExecuting };
// Names of devices, in order: "cpu, cuda or null".
std::string DeviceNames(const DeviceList& devices,
                        DeviceSet which = DeviceSet::kAll);
// The same with one separator: "cpu|cuda|null".
std::string DeviceNames(const DeviceList& devices, DeviceSet which,
                        std::string_view separator);

// True if --share-gpu contradicts the device: it executes programs and is no
// GPU.
bool RefusesShareGpu(const device::DeviceKind& device);

}  // namespace partita::session

#endif  // PARTITA_RUNTIME_SESSION_DEVICES_H_
