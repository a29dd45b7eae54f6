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

// Page aligned, on huge pages where the system has them; ResourceExhausted if
// there is not enough.
absl::StatusOr<void*> AllocatePages(int64_t bytes);
void FreePages(void* memory, int64_t bytes);
// Gives the whole pages inside back to the system; reading them again gives
// zeros.
void ReleasePages(void* memory, int64_t bytes);

// A block that grows, and is reused by whatever runs next.
class Scratch {
 public:
  Scratch() = default;
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch();

  // After this data() has at least `bytes`; earlier pointers are void.
  absl::Status Reserve(int64_t bytes);
  char* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

 private:
  char* data_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace partita::cpu

#endif  // PARTITA_RUNTIME_CPU_MEMORY_H_
