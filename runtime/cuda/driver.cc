// Opens the driver, and converts its errors to statuses.
#include "runtime/cuda/driver.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/library.h"
#include "runtime/base/status_macros.h"

namespace partita::cuda {
namespace {

struct Advice {
  absl::StatusCode code;
  const char* text;
};

constexpr char kLaterAdvice[] =
    "an operation before this call caused it; run again with "
    "CUDA_LAUNCH_BLOCKING=1 to see which one";

Advice AdviceFor(CuResult result) {
  switch (result) {
    case kCuOutOfMemory:
      return {absl::StatusCode::kResourceExhausted,
              "the GPU's memory is full: end other programs that use it "
              "(nvidia-smi lists them), or divide the model over more devices"};
    case kCuNoDevice:
      return {absl::StatusCode::kFailedPrecondition,
              "the driver sees no GPU: look at nvidia-smi and at "
              "CUDA_VISIBLE_DEVICES"};
    case kCuInvalidDevice:
      return {absl::StatusCode::kFailedPrecondition,
              "there is no such GPU: look at nvidia-smi and at "
              "CUDA_VISIBLE_DEVICES"};
    case kCuNoBinaryForGpu:
      return {absl::StatusCode::kFailedPrecondition,
              "the code is for another GPU: compile the model for this one "
              "(--target cuda:sm_XX)"};
    case kCuUnsupportedPtxVersion:
    case kCuSystemDriverMismatch:
      return {absl::StatusCode::kFailedPrecondition,
              "the driver is too old: install a newer one"};
    case kCuJitCompilerNotFound:
      return {absl::StatusCode::kFailedPrecondition,
              "the driver's PTX compiler (libnvidia-ptxjitcompiler) is not "
              "installed: install it, or compile the model to machine code"};
    case kCuInvalidImage:
    case kCuInvalidPtx:
      return {absl::StatusCode::kInvalidArgument,
              "the artifact's code cannot be loaded: compile the model again"};
    case kCuNotFound:
      return {absl::StatusCode::kNotFound, "compile the model again"};
    case kCuEccUncorrectable:
      return {absl::StatusCode::kDataLoss,
              "the GPU's memory is damaged (nvidia-smi -q -d ECC): use another "
              "GPU"};
    case kCuIllegalAddress:
    case kCuMisalignedAddress:
    case kCuLaunchFailed:
    case kCuLaunchTimeout:
      return {absl::StatusCode::kInternal, kLaterAdvice};
    case kCuLaunchOutOfResources:
      return {absl::StatusCode::kInternal,
              "the kernel needs more registers or threads than the GPU has"};
    default:
      return {absl::StatusCode::kInternal,
              "the driver's documentation says more"};
  }
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Driver>> Driver::Open(
    const std::string& path) {
  PARTITA_ASSIGN_OR_RETURN(
      const base::Library library,
      base::Library::Open(
          {path.empty() ? "libcuda.so.1" : path}, "the driver of NVIDIA GPUs",
          "install NVIDIA's driver, or compile and run the model for "
          "the CPU (--target cpu)"));
  auto driver = std::make_shared<Driver>();
#define PARTITA_CUDA_LOAD(member, symbol, parameters) \
  PARTITA_RETURN_IF_ERROR(library.Load(#symbol, &driver->member));
  PARTITA_CUDA_DRIVER_FUNCTIONS(PARTITA_CUDA_LOAD)
#undef PARTITA_CUDA_LOAD
#define PARTITA_CUDA_LOAD(member, symbol, parameters) \
  library.Load(#symbol, &driver->member).IgnoreError();
  PARTITA_CUDA_DRIVER_OPTIONAL_FUNCTIONS(PARTITA_CUDA_LOAD)
#undef PARTITA_CUDA_LOAD
  PARTITA_RETURN_IF_ERROR(
      driver->Check(driver->Init(0), "starting the driver"));
  PARTITA_RETURN_IF_ERROR(driver->Check(driver->DriverVersion(&driver->version),
                                        "asking the driver's version"));
  return std::shared_ptr<const Driver>(std::move(driver));
}

absl::Status Driver::Check(CuResult result, const std::string& doing) const {
  if (result == kCuSuccess) return absl::OkStatus();
  const char* name = nullptr;
  const char* text = nullptr;
  ErrorName(result, &name);
  ErrorText(result, &text);
  const Advice advice = AdviceFor(result);
  return absl::Status(
      advice.code,
      absl::StrCat(doing, ": ", name == nullptr ? "an unknown error" : name,
                   " (", static_cast<int>(result),
                   text == nullptr ? "" : absl::StrCat(", ", text), "); ",
                   advice.text));
}

}  // namespace partita::cuda
