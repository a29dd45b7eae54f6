// Memory of a GPU that operations share, one after another.
#ifndef PARTITA_RUNTIME_CUDA_SCRATCH_H_
#define PARTITA_RUNTIME_CUDA_SCRATCH_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "runtime/cuda/context.h"

namespace partita::cuda {

// Grows when more is asked for; what a graph was captured with must stay where
// it was and is therefore held.
class Scratch {
 public:
  // `what` it is for, in messages: "what GPUs exchange".
  Scratch(std::shared_ptr<Context> context, std::string what)
      : context_(std::move(context)), what_(std::move(what)) {}
  Scratch(const Scratch&) = delete;

  // Makes it at least this big. Waits for the GPU where it gives memory back.
  absl::Status Reserve(int64_t bytes);
  int64_t bytes() const { return bytes_; }
  char* data() const;  // null: nothing was reserved
  // While this lives, so does the memory that data() is now.
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
