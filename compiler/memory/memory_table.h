// A compiled program's memory, by purpose.
#ifndef PARTITA_COMPILER_MEMORY_MEMORY_TABLE_H_
#define PARTITA_COMPILER_MEMORY_MEMORY_TABLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Location.h"

namespace partita::memory {

enum class MemoryClass {
  kParameters,     // parameters, buffers and stored constants
  kStates,         // optimizer states
  kGradients,      // inputs of updates, once they are computed
  kActivations,    // all other computed values
  kCommunication,  // buffers that collectives read or write
  kDerived,        // computed from parameters at load time
  kPorts,          // inputs and outputs
  kScratch,        // of running operations, on GPUs
};
inline constexpr int kMemoryClasses = 8;
// "optimizer states"; as a key "optimizer_states".
std::string nameOf(MemoryClass memory_class, bool key = false);

// One tensor that is in memory at the peak.
struct MemoryPart {
  MemoryClass memory_class;
  int64_t bytes = 0;
  std::string name;  // of a stored tensor; else empty
  mlir::Location loc;
};

// Memory of one device, in bytes. If shards differ in size, all devices count
// as the one with the largest.
struct MemoryTable {
  // Bytes by class at the peak of the arena.
  int64_t at_peak[kMemoryClasses] = {};
  // Peak of the bytes of gradients, at any time.
  int64_t most_gradients = 0;
  // Optimizer states in the host's memory, which are not part of the rest.
  int64_t host = 0;
  // Optimizer states in files; `host` then has their buffers.
  int64_t files = 0;
  // Unused bytes of the arena, between buffers.
  int64_t gaps = 0;
  std::vector<MemoryPart> parts;  // largest first

  int64_t total() const;
  int64_t& of(MemoryClass c) { return at_peak[static_cast<int>(c)]; }
  int64_t of(MemoryClass c) const { return at_peak[static_cast<int>(c)]; }
};

// A table for each entry of a module whose memory is planned, without scratch.
// Optimizer states may be in the host's memory.
std::vector<MemoryTable> tabulateMemory(mlir::ModuleOp module,
                                        bool states_on_host);

}  // namespace partita::memory

#endif  // PARTITA_COMPILER_MEMORY_MEMORY_TABLE_H_
