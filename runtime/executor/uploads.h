// Inputs of the run after this one, brought to the device while this one's step
// runs, on a stream of their own.
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

// Steps, which may be captured, find their inputs where they always are; what
// is uploaded lies beside, and is copied there when its run begins.
class Uploads {
 public:
  // Room for these inputs, of their bytes; of zero bytes: never uploaded. The
  // device outlives the result.
  static absl::StatusOr<std::unique_ptr<Uploads>> Make(
      device::Device& device, const std::vector<int64_t>& input_bytes);
  Uploads(const Uploads&) = delete;
  // Waits for what is being uploaded.
  ~Uploads();

  // Uploads the next run's inputs that have data and room, when those before
  // have been taken on the device. The host's memory must stay as it is until
  // the run that takes them is done.
  absl::Status Begin(const std::vector<ConstTensor>& inputs);
  // Puts input `index`, if it was uploaded from `host`, to `target` as work of
  // `stream`. False: it was not.
  absl::StatusOr<bool> Take(device::Stream& stream, size_t index,
                            const void* host, void* target);
  // All that a run takes is on `stream`; what it did not take is forgotten.
  absl::Status End(device::Stream& stream);

  int64_t bytes() const;  // on the device

 private:
  struct Input {
    device::Allocation memory;
    const void* host = nullptr;  // from where it is uploaded; null: it is not
  };
  explicit Uploads(device::Device& device) : device_(device) {}

  device::Device& device_;
  std::vector<Input> inputs_;
  std::unique_ptr<device::Stream> stream_;
  // Behind the last upload, and behind what took the one before.
  std::unique_ptr<device::Event> uploaded_, taken_;
  bool takes_ = false;  // a run waits for the upload already
};

}  // namespace partita::executor

#endif  // PARTITA_RUNTIME_EXECUTOR_UPLOADS_H_
