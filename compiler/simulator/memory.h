// What a program needs of a device's memory, and when.
#ifndef PARTITA_COMPILER_SIMULATOR_MEMORY_H_
#define PARTITA_COMPILER_SIMULATOR_MEMORY_H_

#include <cstdint>
#include <vector>

#include "runtime/program/program_generated.h"

namespace partita::simulator {

// Bytes of a device that runs an entry. All of it is held from load to end.
struct DeviceMemory {
  int64_t parameters = 0;  // buffers and constants included
  int64_t states = 0;      // of the optimizer
  int64_t derived = 0;     // computed at load time
  int64_t ports = 0;       // inputs and outputs
  int64_t arena = 0;       // everything else, at its fullest
  // On GPUs, what the runtime takes for libraries, transfers and the next
  // inputs, as the compiler counted it; 0 of a program that does not say.
  int64_t reserved = 0;
  int64_t host = 0;  // states in the host's memory, none of the total

  int64_t fixed() const {
    return parameters + states + derived + ports + reserved;
  }
  int64_t total() const { return fixed() + arena; }
};

DeviceMemory MemoryOf(const program::Program& program, int entry);

// Bytes of the arena that hold something that is still needed, while each of
// main's instructions runs; the whole frame of a function during its call.
// [instruction]
std::vector<int64_t> AliveBytes(const program::Program& program, int entry);

}  // namespace partita::simulator

#endif  // PARTITA_COMPILER_SIMULATOR_MEMORY_H_
