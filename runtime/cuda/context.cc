// Opens a GPU and its primary context.
#include "runtime/cuda/context.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace partita::cuda {

absl::StatusOr<std::shared_ptr<Context>> Context::Open(
    std::shared_ptr<const Driver> driver, int ordinal) {
  const Driver& cuda = *driver;
  int count = 0;
  PARTITA_RETURN_IF_ERROR(
      cuda.Check(cuda.DeviceCount(&count), "counting the GPUs"));
  if (ordinal < 0 || ordinal >= count) {
    return absl::FailedPreconditionError(absl::StrCat(
        "expected a GPU number ", ordinal, ", found ", count, " GPU",
        count == 1 ? "" : "s",
        "; look at nvidia-smi and at CUDA_VISIBLE_DEVICES, or let the devices "
        "of this process share GPU 0 (--share-gpu)"));
  }
  std::shared_ptr<Context> context(new Context(std::move(driver)));
  PARTITA_RETURN_IF_ERROR(
      context->Check(cuda.DeviceAt(&context->device_, ordinal),
                     absl::StrCat("opening GPU ", ordinal)));
  PARTITA_RETURN_IF_ERROR(context->Describe());
  PARTITA_RETURN_IF_ERROR(
      context->Check(cuda.RetainContext(&context->context_, context->device_),
                     absl::StrCat("making a context on GPU ", ordinal)));
  PARTITA_RETURN_IF_ERROR(context->Enter());
  return context;
}

Context::~Context() {
  if (context_ != nullptr) driver_->ReleaseContext(device_);
}

absl::Status Context::Describe() {
  const auto ask = [&](CuDeviceAttribute attribute, int* value) {
    return Check(driver_->DeviceAttribute(value, attribute, device_),
                 "asking what the GPU can do");
  };
  PARTITA_RETURN_IF_ERROR(ask(kCuCapabilityMajor, &machine_.major));
  PARTITA_RETURN_IF_ERROR(ask(kCuCapabilityMinor, &machine_.minor));
  PARTITA_RETURN_IF_ERROR(ask(kCuMaxSharedBytesOptIn, &max_shared_bytes_));
  char name[128] = "";
  PARTITA_RETURN_IF_ERROR(
      Check(driver_->DeviceName(name, sizeof(name), device_),
            "asking the GPU's name"));
  machine_.gpu = name;
  machine_.driver_version = driver_->version;
  return absl::OkStatus();
}

}  // namespace partita::cuda
