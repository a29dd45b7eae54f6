// Copies between pageable host memory and the GPU through pinned memory. Copies
// are split into pieces, so that the host's copying and the GPU's overlap.
#ifndef PARTITA_RUNTIME_CUDA_STAGING_H_
#define PARTITA_RUNTIME_CUDA_STAGING_H_

#include <array>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "runtime/cuda/context.h"

namespace partita::cuda {

class Staging {
 public:
  explicit Staging(std::shared_ptr<Context> context)
      : context_(std::move(context)) {}
  Staging(const Staging&) = delete;
  ~Staging();

  // Returns when the host memory has been read. The copy to the GPU is work of
  // the stream.
  absl::Status ToDevice(CuStream stream, void* target, const void* host,
                        int64_t bytes);
  // Returns when the copy is done: waits for the stream.
  absl::Status ToHost(CuStream stream, void* host, const void* source,
                      int64_t bytes);

 private:
  static constexpr int64_t kPieceBytes = int64_t{4} << 20;
  struct Slot {
    void* memory = nullptr;
    CuEvent event = nullptr;
    bool used = false;
  };

  // Makes the slot ready for use: waits until its last copy is done.
  absl::Status Acquire(Slot& slot);
  absl::Status Mark(CuStream stream, Slot& slot);

  const std::shared_ptr<Context> context_;
  std::array<Slot, 2> slots_;
  size_t next_ = 0;
};

}  // namespace partita::cuda

#endif  // PARTITA_RUNTIME_CUDA_STAGING_H_
