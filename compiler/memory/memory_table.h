// What a compiled program's memory is for.
#ifndef PARTITA_COMPILER_MEMORY_MEMORY_TABLE_H_
#define PARTITA_COMPILER_MEMORY_MEMORY_TABLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Location.h"

namespace partita::memory {

enum class MemoryClass {
  kParameters,     // what a model's file holds, and stored constants
  kStates,         // the optimizer's
  kGradients,      // what updates take, from where it is made
  kActivations,    // whatever else is computed
  kCommunication,  // buffers that collectives read or write
  kDerived,        // made of parameters at load time
  kPorts,          // inputs and outputs
  kScratch,        // operations', while they run; of GPUs
};
inline constexpr int kMemoryClasses = 8;
// "optimizer states"; as a key "optimizer_states".
std::string nameOf(MemoryClass memory_class, bool key = false);

// One tensor of those that are there at once.
struct MemoryPart {
  MemoryClass memory_class;
  int64_t bytes = 0;
  std::string name;  // of what is stored; else empty
  mlir::Location loc;
};

// Of one device: the largest, where shards differ, as all take as much. In
// bytes.
struct MemoryTable {
  // Where the arena is fullest; what has an end is counted there.
  int64_t at_peak[kMemoryClasses] = {};
  // Most that is there at once, at whatever time.
  int64_t most_gradients = 0;
  // Optimizer states in the host's memory, which are no part of the rest.
  int64_t host = 0;
  // Of the arena, between buffers.
  int64_t gaps = 0;
  std::vector<MemoryPart> parts;  // largest first

  int64_t total() const;
  int64_t& of(MemoryClass c) { return at_peak[static_cast<int>(c)]; }
  int64_t of(MemoryClass c) const { return at_peak[static_cast<int>(c)]; }
};

// Of each entry of a module whose memory is planned, without scratch. The
// optimizer's states may lie on the host.
std::vector<MemoryTable> tabulateMemory(mlir::ModuleOp module,
                                        bool states_on_host);

}  // namespace partita::memory

#endif  // PARTITA_COMPILER_MEMORY_MEMORY_TABLE_H_
