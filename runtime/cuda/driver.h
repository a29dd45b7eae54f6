// NVIDIA's driver, opened at run time.
#ifndef PARTITA_RUNTIME_CUDA_DRIVER_H_
#define PARTITA_RUNTIME_CUDA_DRIVER_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/cuda/driver_api.h"

namespace partita::cuda {

// The driver's functions.
struct Driver {
#define PARTITA_CUDA_MEMBER(member, symbol, parameters) \
  CuResult(*member) parameters = nullptr;
  PARTITA_CUDA_DRIVER_FUNCTIONS(PARTITA_CUDA_MEMBER)
  PARTITA_CUDA_DRIVER_OPTIONAL_FUNCTIONS(PARTITA_CUDA_MEMBER)
#undef PARTITA_CUDA_MEMBER

  int version = 0;  // 12040 for CUDA 12.4

  // Opens and starts the driver: libcuda.so.1, or the library at `path`.
  // FailedPrecondition, with advice, if it cannot be loaded or does not start.
  static absl::StatusOr<std::shared_ptr<const Driver>> Open(
      const std::string& path = "");

  // Converts a result. The message has `doing` ("allocating 4096 bytes"), the
  // driver's name of the error, and advice.
  absl::Status Check(CuResult result, const std::string& doing) const;
};

}  // namespace partita::cuda

#endif  // PARTITA_RUNTIME_CUDA_DRIVER_H_
