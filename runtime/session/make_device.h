// The device that runs a model.
#ifndef PARTITA_RUNTIME_SESSION_MAKE_DEVICE_H_
#define PARTITA_RUNTIME_SESSION_MAKE_DEVICE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/device_communicator.h"
#include "runtime/cuda/shared_gpu.h"
#include "runtime/device/device.h"
#include "runtime/program/artifact.h"
#include "runtime/session/options.h"

namespace partita::session {

// "cpu", "cuda" or "null": what the options say, else what the model was
// compiled for.
std::string DeviceOf(const SessionOptions& options,
                     const program::Program& program);

// How many threads each of `shares` devices on this machine has.
int ThreadsOf(const SessionOptions& options, int shares);

// FailedPrecondition where --share-gpu is said of what runs on CPUs.
absl::Status CheckShareGpu(const SessionOptions& options,
                           const program::Program& program);

// Before the first device is made, and before there are threads that read the
// environment: says there what GPUs that exchange with each other need of the
// driver, which reads it when it starts. What the user said stays.
void PrepareEnvironment(const SessionOptions& options,
                        const program::Program& program);

// The device numbered `index` among those of this job on this machine: a CPU
// device with this many threads, or the GPU of that number. With --share-gpu
// all stand on GPU 0, and so does a process to which CUDA_VISIBLE_DEVICES
// leaves one only.
absl::StatusOr<std::unique_ptr<device::Device>> MakeDevice(
    const SessionOptions& options, const program::Program& program, int index,
    int threads);

// What devices that are threads of this process share where all of them stand
// on one GPU; null elsewhere.
std::shared_ptr<cuda::SharedGpu> MakeSharedGpu(const SessionOptions& options,
                                               const program::Program& program);

// What the device of MakeDevice exchanges by with those of other ranks: copies
// in the memory of the GPU that they share, if `shared` is one; NCCL, for GPUs
// of their own where it is installed for all ranks. Else null: tensors go
// through the host's memory. All ranks call it, and an error of one is
// everybody's.
absl::StatusOr<std::unique_ptr<comm::DeviceCommunicator>>
MakeDeviceCommunicator(const SessionOptions& options,
                       const program::Program& program, int index,
                       comm::Communicator& base,
                       std::shared_ptr<cuda::SharedGpu> shared = nullptr);

}  // namespace partita::session

#endif  // PARTITA_RUNTIME_SESSION_MAKE_DEVICE_H_
