// Copies the next run's inputs to the device on a separate stream while the
// current run's step executes.
#ifndef PARTITA_RUNTIME_EXECUTOR_UPLOADS_H_
#define PARTITA_RUNTIME_EXECUTOR_UPLOADS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/device/device.h"
#include "runtime/executor/tensor.h"

namespace partita::executor {

// Steps, which may be captured, read inputs at fixed addresses. Uploads go to
// separate memory and are copied to those addresses when their run begins.
class Uploads {
 public:
  // Allocates memory for inputs of these sizes; inputs of 0 bytes are never
  // uploaded. The device must outlive the result.
  static absl::StatusOr<std::unique_ptr<Uploads>> Make(
      device::Device& device, const std::vector<int64_t>& input_bytes);
  Uploads(const Uploads&) = delete;
  // Waits for uploads in flight.
  ~Uploads();

  // Starts uploading the next run's inputs that have both data and device
  // memory, once the device has taken the previous uploads. The host memory
  // must not change until the run that uses them is done.
  absl::Status Begin(const std::vector<ConstTensor>& inputs);
  // If input `index` was uploaded from `host`, enqueues its copy to `target` on
  // `stream` and returns true; else returns false.
  absl::StatusOr<bool> Take(device::Stream& stream, size_t index,
                            const void* host, void* target);
  // Call when `stream` has all copies of this run; forgets uploads that were
  // not taken.
  absl::Status End(device::Stream& stream);

  int64_t bytes() const;  // of device memory

 private:
  struct Input {
    device::Allocation memory;
    const void* host = nullptr;  // source of the upload; null: none
  };
  explicit Uploads(device::Device& device) : device_(device) {}

  device::Device& device_;
  std::vector<Input> inputs_;
  std::unique_ptr<device::Stream> stream_;
  // Recorded after the last upload, and after the last run took its uploads.
  std::unique_ptr<device::Event> uploaded_, taken_;
  bool takes_ = false;  // a run already waits for the upload
};

}  // namespace partita::executor

#endif  // PARTITA_RUNTIME_EXECUTOR_UPLOADS_H_
