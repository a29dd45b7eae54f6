#include "runtime/api/read_options.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/session/devices.h"

namespace partita::api {

absl::Status CheckGiven(const void* pointer, const char* what) {
  if (pointer != nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("expected ", what, ", found NULL"));
}

absl::Status CheckVersion(uint32_t abi_version, uint32_t found_size,
                          size_t size, const char* type, const char* macro) {
  if (abi_version != PARTITA_ABI_VERSION)
    return absl::InvalidArgumentError(
        absl::StrCat("expected a program for ABI version ", PARTITA_ABI_VERSION,
                     " of libpartita_runtime, found one for version ",
                     abi_version, "; begin with ", type, " options = ", macro,
                     " and build the program with this library's header"));
  if (found_size != size)
    return absl::InvalidArgumentError(
        absl::StrCat("expected options of ", size, " bytes, found ", found_size,
                     "; begin with ", type, " options = ", macro));
  return absl::OkStatus();
}

absl::StatusOr<session::SessionOptions> ReadOptions(
    const char* path, const partita_options& options) {
  PARTITA_RETURN_IF_ERROR(CheckVersion(options.abi_version, options.size,
                                       sizeof(partita_options),
                                       "partita_options", "PARTITA_OPTIONS"));
  if (options.threads < 0 || options.threads > session::kMostThreads ||
      !(options.timeout_seconds >= 0))
    return absl::InvalidArgumentError(
        absl::StrCat("expected threads from 0 to ", session::kMostThreads,
                     " and timeout_seconds of 0 or more, found ",
                     options.threads, " and ", options.timeout_seconds));
  session::SessionOptions result;
  result.model = path;
  result.threads = options.threads;
  if (options.weights_dir != nullptr) result.weights_dir = options.weights_dir;
  if (options.timeout_seconds > 0) result.timeout = options.timeout_seconds;
  if (options.device == nullptr) return result;
  const session::DeviceList& devices = session::Devices();
  if (session::FindDevice(devices, options.device) == nullptr)
    return absl::InvalidArgumentError(
        absl::StrCat("expected the device ", session::DeviceNames(devices),
                     ", found '", options.device, "'"));
  result.device = options.device;
  return result;
}

}  // namespace partita::api
