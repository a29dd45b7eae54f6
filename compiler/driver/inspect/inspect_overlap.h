// Collectives of an artifact that run beside other work, for `partita inspect`.
#ifndef PARTITA_COMPILER_DRIVER_INSPECT_INSPECT_OVERLAP_H_
#define PARTITA_COMPILER_DRIVER_INSPECT_INSPECT_OVERLAP_H_

#include "llvm/Support/JSON.h"
#include "runtime/program/artifact.h"

namespace partita::driver {

// One object for each collective that is started: its name and kind, the
// function, the bytes of its input, the instructions that start and await it,
// and the calls, products and convolutions in between.
llvm::json::Array overlappedIn(const program::Program& program);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_INSPECT_INSPECT_OVERLAP_H_
