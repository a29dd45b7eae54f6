// The one place that knows all devices.
#include "runtime/tools/make_device.h"

#include <cstdlib>

#include "runtime/cpu/cpu_device.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/device/null_device.h"

namespace partita::tools {
namespace {

// As launchers set it that give each process a GPU of its own.
bool OneGpuIsVisible() {
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return visible != nullptr && *visible != '\0' &&
         std::string(visible).find(',') == std::string::npos;
}

}  // namespace

std::string DeviceOf(const RunOptions& options,
                     const program::Program& program) {
  if (!options.device.empty()) return options.device;
  const bool for_gpus = program.target() != nullptr &&
                        program.target()->str().rfind("cuda:", 0) == 0;
  return for_gpus ? "cuda" : "cpu";
}

absl::StatusOr<std::unique_ptr<device::Device>> MakeDevice(
    const RunOptions& options, const program::Program& program, int index,
    int threads) {
  const std::string device = DeviceOf(options, program);
  if (device == "null")
    return std::unique_ptr<device::Device>(
        std::make_unique<device::NullDevice>());
  if (device == "cpu") return cpu::MakeCpuDevice({threads});
  cuda::CudaOptions cuda;
  cuda.ordinal = options.share_gpu || OneGpuIsVisible() ? 0 : index;
  return cuda::MakeCudaDevice(cuda);
}

}  // namespace partita::tools
