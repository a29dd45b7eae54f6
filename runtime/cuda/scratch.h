// GPU memory that operations share, one after another.
#ifndef PARTITA_RUNTIME_CUDA_SCRATCH_H_
#define PARTITA_RUNTIME_CUDA_SCRATCH_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "runtime/cuda/context.h"

namespace partita::cuda {

// A growable block. A captured graph refers to fixed addresses, so it holds its
// block (Hold) even after the scratch has grown.
class Scratch {
 public:
  // `what` names its use in messages: "the scratch of collectives".
  Scratch(std::shared_ptr<Context> context, std::string what)
      : context_(std::move(context)), what_(std::move(what)) {}
  Scratch(const Scratch&) = delete;

  // Grows the block to at least `bytes`. Waits for the GPU if the old block is
  // freed.
  absl::Status Reserve(int64_t bytes);
  int64_t bytes() const { return bytes_; }
  char* data() const;  // null if nothing was reserved
  // Keeps the memory at the current data() alive.
  std::shared_ptr<const void> Hold() const { return memory_; }

 private:
  class Memory;

  const std::shared_ptr<Context> context_;
  const std::string what_;
  std::shared_ptr<Memory> memory_;
  int64_t bytes_ = 0;
};

}  // namespace partita::cuda

#endif  // PARTITA_RUNTIME_CUDA_SCRATCH_H_
