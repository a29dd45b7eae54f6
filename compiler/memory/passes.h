// Passes that place buffers; see passes.td.
#ifndef PARTITA_COMPILER_MEMORY_PASSES_H_
#define PARTITA_COMPILER_MEMORY_PASSES_H_

#include <memory>

#include "compiler/core/buckets.h"
#include "mlir/Pass/Pass.h"

namespace partita::memory {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "compiler/memory/passes.h.inc"

}  // namespace partita::memory

#endif  // PARTITA_COMPILER_MEMORY_PASSES_H_
