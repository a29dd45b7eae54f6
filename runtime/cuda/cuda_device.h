// NVIDIA GPUs as devices: the driver's streams, events and kernels, matrix
// products by cuBLASLt. Nothing of CUDA is needed to build it.
#ifndef PARTITA_RUNTIME_CUDA_CUDA_DEVICE_H_
#define PARTITA_RUNTIME_CUDA_CUDA_DEVICE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/device/device.h"

namespace partita::cuda {

struct CudaOptions {
  int ordinal = 0;  // among the GPUs that the driver shows
  // Libraries to open; empty: those that are installed. Without cuBLASLt and
  // cuDNN ("none") kernels of the runtime's own compute products and
  // convolutions, slowly.
  std::string driver;
  std::string blas;
  std::string dnn;
  // NVTX, which shows profilers the operations' names; "none": not even where
  // it is installed.
  std::string nvtx;
  // Where the fastest algorithms of products are kept (tuner.h); empty:
  // nowhere. They are measured where the file does not say it. Not for ranks
  // that compute the same: they must get the same bits.
  std::string tuned;
  bool measures = false;
};

// FailedPrecondition, with what to do, where there is no driver or no such GPU.
// Devices of one GPU in one process share its context, so that each can read
// the others' memory. With CUDA_LAUNCH_BLOCKING=1 in the environment every
// operation is waited for, so that errors name theirs. Steps are captured as
// graphs unless that or PARTITA_CUDA_GRAPHS=0 is set, as for a profiler that is
// to see every operation's name.
absl::StatusOr<std::unique_ptr<device::Device>> MakeCudaDevice(
    const CudaOptions& options = {});

}  // namespace partita::cuda

#endif  // PARTITA_RUNTIME_CUDA_CUDA_DEVICE_H_
