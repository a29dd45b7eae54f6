// Checks the parts of a program that make it a training step.
#ifndef PARTITA_RUNTIME_PROGRAM_VALIDATE_TRAINING_H_
#define PARTITA_RUNTIME_PROGRAM_VALIDATE_TRAINING_H_

#include "absl/status/status.h"
#include "runtime/program/program_generated.h"

namespace partita::program {

// (V11) of ValidateProgram; the ports' types have been checked.
absl::Status ValidateRoles(const Program& program);

// (V12) of ValidateProgram for one entry; the parameters have been checked.
absl::Status ValidateUpdates(const Program& program, const Entry& entry);

}  // namespace partita::program

#endif  // PARTITA_RUNTIME_PROGRAM_VALIDATE_TRAINING_H_
