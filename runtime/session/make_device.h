// Creates the device that runs a model.
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

// "cpu", "cuda" or "null": the device in the options, else the target that the
// model was compiled for.
std::string DeviceOf(const SessionOptions& options,
                     const program::Program& program);

// Threads of each device: of `devices` in this process and `sharers` on this
// machine, those of other processes included. By default a process divides the
// processors that it is bound to among its devices, and takes no more than its
// part of the machine.
int ThreadsOf(const SessionOptions& options, int devices, int sharers);

// FailedPrecondition if --share-gpu is given for a model that runs on CPUs.
absl::Status CheckShareGpu(const SessionOptions& options,
                           const program::Program& program);

// Sets environment variables that the GPU driver reads when it starts, for GPUs
// that exchange with each other. Keeps variables that the user has set. Call
// before the first device is made and before other threads read the
// environment.
void PrepareEnvironment(const SessionOptions& options,
                        const program::Program& program);

// Makes the device with number `index` on this machine within the job: a CPU
// device with `threads` threads, or the GPU of that number. With --share-gpu
// all devices use GPU 0; so does a process for which CUDA_VISIBLE_DEVICES
// leaves a single GPU.
absl::StatusOr<std::unique_ptr<device::Device>> MakeDevice(
    const SessionOptions& options, const program::Program& program, int index,
    int threads);

// Shared state of devices that are threads of this process, if all of them use
// one GPU; else null.
std::shared_ptr<cuda::SharedGpu> MakeSharedGpu(const SessionOptions& options,
                                               const program::Program& program);

// Makes the communicator between the devices that MakeDevice makes for all
// ranks. With `shared`, devices copy within the memory of their common GPU;
// with one GPU per rank, they use NCCL if it is installed for all ranks. Else
// null: tensors go through host memory. Collective over all ranks; an error of
// one rank is returned by all.
absl::StatusOr<std::unique_ptr<comm::DeviceCommunicator>>
MakeDeviceCommunicator(const SessionOptions& options,
                       const program::Program& program, int index,
                       comm::Communicator& base,
                       std::shared_ptr<cuda::SharedGpu> shared = nullptr);

}  // namespace partita::session

#endif  // PARTITA_RUNTIME_SESSION_MAKE_DEVICE_H_
