// Checks collectives that are started and awaited.
#ifndef PARTITA_RUNTIME_PROGRAM_VALIDATE_STARTED_H_
#define PARTITA_RUNTIME_PROGRAM_VALIDATE_STARTED_H_

#include "absl/status/status.h"
#include "runtime/program/program_generated.h"

namespace partita::program {

// (V15) for one function with valid buffers, operations and calls. Assumes that
// different arguments do not overlap.
absl::Status ValidateStarted(const Program& program, const Function& function);

// (V15) again for the mains of entries, where an update shares the memory of
// its parameter's argument. Entries are valid.
absl::Status ValidateStartedUpdates(const Program& program);

}  // namespace partita::program

#endif  // PARTITA_RUNTIME_PROGRAM_VALIDATE_STARTED_H_
