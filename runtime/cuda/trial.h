// Temporary device memory on which algorithms are timed. Its content is
// undefined.
#ifndef PARTITA_RUNTIME_CUDA_TRIAL_H_
#define PARTITA_RUNTIME_CUDA_TRIAL_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "runtime/cuda/context.h"

namespace partita::cuda {

class Trial {
 public:
  explicit Trial(const Context& context) : context_(context) {}
  Trial(const Trial&) = delete;
  ~Trial() {
    for (const CuPointer memory : memory_) context_.driver().Free(memory);
  }
  // Allocates device memory. Null if there is not enough.
  void* Make(int64_t bytes) {
    CuPointer memory = 0;
    const size_t size = static_cast<size_t>(std::max<int64_t>(bytes, 1));
    if (context_.driver().Allocate(&memory, size) != kCuSuccess) return nullptr;
    memory_.push_back(memory);
    return reinterpret_cast<void*>(memory);
  }

 private:
  const Context& context_;
  std::vector<CuPointer> memory_;
};

}  // namespace partita::cuda

#endif  // PARTITA_RUNTIME_CUDA_TRIAL_H_
