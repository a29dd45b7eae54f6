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
  // Libraries to open; empty: those that are installed. Without cuBLASLt
  // ("none") kernels of the runtime's own compute products, slowly.
  std::string driver;
  std::string blas;
};

// FailedPrecondition, with what to do, where there is no driver or no such GPU.
// Devices of one GPU in one process share its context, so that each can read
// the others' memory. With CUDA_LAUNCH_BLOCKING=1 in the environment every
// operation is waited for, so that errors name theirs.
absl::StatusOr<std::unique_ptr<device::Device>> MakeCudaDevice(
    const CudaOptions& options = {});

}  // namespace partita::cuda

#endif  // PARTITA_RUNTIME_CUDA_CUDA_DEVICE_H_
