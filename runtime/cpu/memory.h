// Memory of the CPU device.
#ifndef PARTITA_RUNTIME_CPU_MEMORY_H_
#define PARTITA_RUNTIME_CPU_MEMORY_H_

#include <cstdint>

#include "absl/status/statusor.h"

namespace partita::cpu {

inline constexpr int64_t kAlignment = 64;

inline int64_t AlignUp(int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// Allocates page-aligned memory, on huge pages if the system has them.
// ResourceExhausted if there is not enough.
absl::StatusOr<void*> AllocatePages(int64_t bytes);
void FreePages(void* memory, int64_t bytes);
// Returns the whole pages inside the range to the system. They read as zeros
// afterwards.
void ReleasePages(void* memory, int64_t bytes);

// A growable block of scratch memory that operations reuse one after another.
class Scratch {
 public:
  Scratch() = default;
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch();

  // Grows data() to at least `bytes`. Earlier pointers become invalid.
  absl::Status Reserve(int64_t bytes);
  char* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

 private:
  char* data_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace partita::cpu

#endif  // PARTITA_RUNTIME_CPU_MEMORY_H_
