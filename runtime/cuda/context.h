// One GPU of the driver, and its primary context, which libraries share.
#ifndef PARTITA_RUNTIME_CUDA_CONTEXT_H_
#define PARTITA_RUNTIME_CUDA_CONTEXT_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/target.h"

namespace partita::cuda {

class Context {
 public:
  // FailedPrecondition, with the number of GPUs, if there is no GPU `ordinal`.
  static absl::StatusOr<std::shared_ptr<Context>> Open(
      std::shared_ptr<const Driver> driver, int ordinal);
  Context(const Context&) = delete;
  ~Context();

  const Driver& driver() const { return *driver_; }
  const Machine& machine() const { return machine_; }
  // Maximum shared memory per block, in bytes.
  int max_shared_bytes() const { return max_shared_bytes_; }

  // Makes the context current on the calling thread. Call it before any other
  // driver call.
  absl::Status Enter() const {
    return Check(driver_->SetContext(context_), "entering the GPU's context");
  }
  absl::Status Check(CuResult result, const std::string& doing) const {
    return result == kCuSuccess ? absl::OkStatus()
                                : driver_->Check(result, doing);
  }
  // The same, without building a string on success.
  absl::Status Check(CuResult result, const char* doing) const {
    return result == kCuSuccess ? absl::OkStatus()
                                : driver_->Check(result, doing);
  }

 private:
  explicit Context(std::shared_ptr<const Driver> driver)
      : driver_(std::move(driver)) {}
  absl::Status Describe();

  const std::shared_ptr<const Driver> driver_;
  CuDevice device_ = 0;
  CuContext context_ = nullptr;
  Machine machine_;
  int max_shared_bytes_ = 0;
};

}  // namespace partita::cuda

#endif  // PARTITA_RUNTIME_CUDA_CONTEXT_H_
