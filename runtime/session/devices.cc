// The only file that names all devices.
#include "runtime/session/devices.h"

#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "runtime/cpu/cpu_kind.h"
#include "runtime/cuda/cuda_kind.h"
#include "runtime/device/null_device.h"
#include "runtime/program/target.h"

namespace partita::session {
namespace {

std::vector<std::string> NamesOf(const DeviceList& devices, DeviceSet which) {
  std::vector<std::string> names;
  for (const device::DeviceKind& device : devices)
    if (which == DeviceSet::kAll || device.executes)
      names.push_back(device.name);
  return names;
}

// `last` separates the last two names.
std::string Join(const std::vector<std::string>& names,
                 std::string_view separator, std::string_view last) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? last : separator;
    text += names[i];
  }
  return text;
}

}  // namespace

// One line per device.
const DeviceList& Devices() {
  static const DeviceList devices = {
      cpu::CpuKind(),
      cuda::CudaKind(),
      device::NullKind(),
  };
  return devices;
}

absl::Status CheckDevices(const DeviceList& devices) {
  std::set<std::string> names, targets;
  for (const device::DeviceKind& device : devices) {
    if (device.name.empty() || device.make == nullptr)
      return absl::InternalError(absl::StrCat(
          "list of devices: expected a name and a factory for each device, "
          "found '",
          device.name, "' ", device.make == nullptr ? "without" : "with",
          " a factory; correct runtime/session/devices.cc"));
    if (!names.insert(device.name).second)
      return absl::InternalError(absl::StrCat(
          "list of devices: expected one device per name, found two named '",
          device.name, "'; rename one in runtime/session/devices.cc"));
    for (const std::string& target : device.targets)
      if (!targets.insert(target).second)
        return absl::InternalError(absl::StrCat(
            "list of devices: expected one device per kind of target, found "
            "a second one for '",
            target, "': '", device.name,
            "'; take the target from one of the two"));
  }
  return absl::OkStatus();
}

const device::DeviceKind* FindDevice(const DeviceList& devices,
                                     std::string_view name) {
  for (const device::DeviceKind& device : devices)
    if (device.name == name) return &device;
  return nullptr;
}

const device::DeviceKind* FindDeviceOfTarget(const DeviceList& devices,
                                             std::string_view target) {
  const std::optional<program::Target> parsed = program::ParseTarget(target);
  if (!parsed) return nullptr;
  for (const device::DeviceKind& device : devices)
    for (const std::string& kind : device.targets)
      if (kind == parsed->kind) return &device;
  return nullptr;
}

std::string DeviceNames(const DeviceList& devices, DeviceSet which) {
  return Join(NamesOf(devices, which), ", ", " or ");
}

std::string DeviceNames(const DeviceList& devices, DeviceSet which,
                        std::string_view separator) {
  return Join(NamesOf(devices, which), separator, separator);
}

bool RefusesShareGpu(const device::DeviceKind& device) {
  return device.executes && !device.is_gpu;
}

}  // namespace partita::session
