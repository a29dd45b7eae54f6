// Copies between pageable host memory and the GPU, through pinned memory, in
// pieces that overlap with the host's own copying.
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

  // Returns when the host's memory has been read; the copy itself is work of
  // the stream.
  absl::Status ToDevice(CuStream stream, void* target, const void* host,
                        int64_t bytes);
  // Returns when the bytes are there: waits for the stream.
  absl::Status ToHost(CuStream stream, void* host, const void* source,
                      int64_t bytes);

 private:
  static constexpr int64_t kPieceBytes = int64_t{4} << 20;
  struct Slot {
    void* memory = nullptr;
    CuEvent event = nullptr;
    bool used = false;
  };

  // A slot that nothing uses any more.
  absl::Status Acquire(Slot& slot);
  absl::Status Mark(CuStream stream, Slot& slot);

  const std::shared_ptr<Context> context_;
  std::array<Slot, 2> slots_;
  size_t next_ = 0;
};

}  // namespace partita::cuda

#endif  // PARTITA_RUNTIME_CUDA_STAGING_H_
