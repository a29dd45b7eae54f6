// The memory that a program needs on a device, and when.
#ifndef PARTITA_COMPILER_SIMULATOR_MEMORY_H_
#define PARTITA_COMPILER_SIMULATOR_MEMORY_H_

#include <cstdint>
#include <vector>

#include "runtime/program/program_generated.h"

namespace partita::simulator {

// Bytes of a device that runs an entry. It holds all of them from load to end.
struct DeviceMemory {
  int64_t parameters = 0;  // buffers and constants included
  int64_t states = 0;      // of the optimizer
  int64_t derived = 0;     // computed at load time
  int64_t ports = 0;       // inputs and outputs
  int64_t arena = 0;       // everything else, at its peak
  // On GPUs, memory that the runtime uses for libraries, transfers and the next
  // inputs, as counted by the compiler. 0 if the program does not say.
  int64_t reserved = 0;
  // States in host memory, or their buffers if they are in files. Neither is in
  // the total.
  int64_t host = 0;
  int64_t files = 0;  // states in files

  int64_t fixed() const {
    return parameters + states + derived + ports + reserved;
  }
  int64_t total() const { return fixed() + arena; }
};

DeviceMemory MemoryOf(const program::Program& program, int entry);

// [instruction]: bytes of the arena that hold values still needed while each
// instruction of main runs. A called function counts with its whole frame.
std::vector<int64_t> AliveBytes(const program::Program& program, int entry);

}  // namespace partita::simulator

#endif  // PARTITA_COMPILER_SIMULATOR_MEMORY_H_
