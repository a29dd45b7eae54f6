// Creates the device that runs a model.
#ifndef PARTITA_RUNTIME_SESSION_MAKE_DEVICE_H_
#define PARTITA_RUNTIME_SESSION_MAKE_DEVICE_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/device/device.h"
#include "runtime/device/device_kind.h"
#include "runtime/program/artifact.h"
#include "runtime/session/options.h"

namespace partita::session {

// The device that the options name, else the device that runs the target that
// the model was compiled for. It is a member of Devices(). InvalidArgument,
// with the names of all devices, if none has the name in the options.
absl::StatusOr<const device::DeviceKind*> DeviceOf(
    const SessionOptions& options, const program::Program& program);

// Returns the number of threads per device. This process has `devices` devices;
// `sharers` devices of all processes share the machine. By default a process
// divides the processors that it is bound to among its devices, and each device
// takes at most its part of the machine.
int ThreadsOf(const SessionOptions& options, int devices, int sharers);

// FailedPrecondition if --share-gpu is given for a model that runs on CPUs.
absl::Status CheckShareGpu(const SessionOptions& options,
                           const program::Program& program);

// Sets environment variables that the device needs
// (DeviceKind::prepare_environment). Keeps variables that the user has set.
// Call before the first device is made and before other threads read the
// environment. Does nothing if DeviceOf fails.
void PrepareEnvironment(const SessionOptions& options,
                        const program::Program& program);

// Makes the device with number `index` on this machine within the job: a CPU
// device with `threads` threads, or the GPU of that number. With --share-gpu
// all devices use GPU 0; so does a process that sees a single GPU, by
// CUDA_VISIBLE_DEVICES or, in a job, by the system's control groups.
absl::StatusOr<std::unique_ptr<device::Device>> MakeDevice(
    const SessionOptions& options, const program::Program& program, int index,
    int threads);

// Makes the function that makes a communicator for each device of this process,
// to exchange tensors without host memory where the device can. Call once per
// process. `in_threads`: the devices of all ranks are threads of this process.
absl::StatusOr<device::MakeCommunicator> MakeCommunicators(
    const SessionOptions& options, const program::Program& program,
    bool in_threads);

}  // namespace partita::session

#endif  // PARTITA_RUNTIME_SESSION_MAKE_DEVICE_H_
