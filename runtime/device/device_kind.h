// One line of the runtime's list of devices (runtime/session/devices.cc). Each
// folder of a device has a function that returns its DeviceKind; null_device.cc
// has the shortest.
#ifndef PARTITA_RUNTIME_DEVICE_DEVICE_KIND_H_
#define PARTITA_RUNTIME_DEVICE_DEVICE_KIND_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/device_communicator.h"
#include "runtime/device/device.h"

namespace partita::device {

// Options that the devices of all ranks of a model share.
struct JobOptions {
  std::string model;       // path of the artifact; devices may keep files there
  int64_t ranks = 1;       // devices that the model was compiled for
  bool share_gpu = false;  // all devices of this machine use GPU 0
  comm::CommOptions comm;
};

// Makes the communicator of the device with number `index` on this machine.
// Null: tensors go through host memory. Collective over all ranks of `base`,
// which must outlive the result; an error of one rank is returned by all. Each
// rank calls it on its own thread.
using MakeCommunicator =
    std::function<absl::StatusOr<std::unique_ptr<comm::DeviceCommunicator>>(
        int index, comm::Communicator& base)>;

struct DeviceKind {
  // The device's name in options, messages and help; Device::Name() is the
  // same.
  std::string name;
  // Kinds of the targets (program::Target::kind) whose code the device runs. A
  // model without --device runs on the device that lists its target. May be
  // empty: then only --device selects the device.
  std::vector<std::string> targets;
  bool is_gpu = false;   // may be shared by several ranks (--share-gpu)
  bool executes = true;  // false: outputs are undefined, so it cannot train
  std::string note;      // for help: verb phrase about the device, or empty

  // Required. Makes the device with number `index` on this machine. `threads`
  // is the number of CPU threads for it; 0: all.
  absl::StatusOr<std::unique_ptr<Device>> (*make)(const JobOptions& job,
                                                  int index,
                                                  int threads) = nullptr;
  // Called once per process and model. `in_threads`: all ranks are threads of
  // this process, so communicators may share state in its memory. Null: all
  // tensors go through host memory.
  MakeCommunicator (*communicators)(const JobOptions& job,
                                    bool in_threads) = nullptr;
  // Sets environment variables that a library of the device reads when it
  // starts; keeps variables that the user has set. Called before the first
  // device is made, and before other threads read the environment. Null: the
  // device needs none.
  void (*prepare_environment)(const JobOptions& job) = nullptr;
};

}  // namespace partita::device

#endif  // PARTITA_RUNTIME_DEVICE_DEVICE_KIND_H_
