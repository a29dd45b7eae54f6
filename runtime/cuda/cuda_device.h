// NVIDIA GPUs as devices: the driver's streams, events and kernels, products by
// cuBLASLt and convolutions by cuDNN. It builds without CUDA.
#ifndef PARTITA_RUNTIME_CUDA_CUDA_DEVICE_H_
#define PARTITA_RUNTIME_CUDA_CUDA_DEVICE_H_

#include <chrono>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/device/device.h"

namespace partita::cuda {

// Who computes an attention that the program describes.
enum class AttentionBy {
  kFaster,  // cuDNN where it measures faster than the compiler's kernel
  kLaunch,  // the compiler's kernel
  kDnn      // cuDNN wherever it can; only for tests and benchmarks
};

struct CudaOptions {
  int ordinal = 0;  // among the GPUs that the driver shows
  // Libraries to open. Empty: the installed ones. If `blas` or `dnn` is "none"
  // or not installed, the runtime's own slow kernels compute products or
  // convolutions.
  std::string driver;
  std::string blas;
  std::string dnn;
  // NVTX, which shows operation names in profilers. "none" disables it.
  std::string nvtx;
  // File of the fastest algorithms of products and convolutions (tuner.h).
  // Empty: none.
  std::string tuned;
  // Measure operations that the file does not list. Do not set it for ranks
  // that must compute the same bits: they could choose different algorithms.
  bool measures = false;
  // Run each product and convolution once when it is prepared, so that the
  // libraries' kernels are loaded before the first step.
  bool warms = false;
  // cuSPARSELt, which multiplies by constant weights of the 2:4 pattern. Empty:
  // the installed one, if any. "none": they are multiplied as dense ones. Each
  // device decides by the memory that it has, so this, too, must be "none" for
  // ranks that must compute the same bits.
  std::string sparse;
  // Devices that do not measure launch in any case.
  AttentionBy attention = AttentionBy::kFaster;
  // Time for all measurements, and for preparing what they compare. Operations
  // that are prepared later get the library's first choice, or are launched.
  std::chrono::milliseconds tuning_time = std::chrono::milliseconds(3000);
};

// FailedPrecondition, with advice, if there is no driver or no such GPU.
// Devices of one GPU in one process share its context, so each can read the
// others' memory. With CUDA_LAUNCH_BLOCKING=1 in the environment the host waits
// for every operation, so errors name the failing operation. Steps are captured
// as graphs unless CUDA_LAUNCH_BLOCKING=1 or PARTITA_CUDA_GRAPHS=0 is set. The
// latter lets a profiler see every operation's name. With PARTITA_CUDA_SPARSE=0
// cuSPARSELt is not used. PARTITA_CUDA_ATTENTION=launch or =cudnn sets
// `attention`; InvalidArgument for other values.
absl::StatusOr<std::unique_ptr<device::Device>> MakeCudaDevice(
    const CudaOptions& options = {});

}  // namespace partita::cuda

#endif  // PARTITA_RUNTIME_CUDA_CUDA_DEVICE_H_
