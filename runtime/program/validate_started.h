// Collectives that are started and awaited.
#ifndef PARTITA_RUNTIME_PROGRAM_VALIDATE_STARTED_H_
#define PARTITA_RUNTIME_PROGRAM_VALIDATE_STARTED_H_

#include "absl/status/status.h"
#include "runtime/program/program_generated.h"

namespace partita::program {

// (V15) of one function, whose buffers, operations and calls are valid; what is
// given for an argument overlaps nothing else.
absl::Status ValidateStarted(const Program& program, const Function& function);

// (V15) of the mains of entries once more: what updates a parameter lies in the
// memory of the argument that it is. Entries are valid.
absl::Status ValidateStartedUpdates(const Program& program);

}  // namespace partita::program

#endif  // PARTITA_RUNTIME_PROGRAM_VALIDATE_STARTED_H_
