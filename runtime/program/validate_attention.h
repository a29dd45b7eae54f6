// Checks what a launch says about the attention that its kernel computes.
#ifndef PARTITA_RUNTIME_PROGRAM_VALIDATE_ATTENTION_H_
#define PARTITA_RUNTIME_PROGRAM_VALIDATE_ATTENTION_H_

#include "absl/status/status.h"
#include "runtime/program/program_generated.h"

namespace partita::program {

// InvalidArgument unless sizes are in range, q, k and v lie in inputs, and out
// and the log-sum-exp lie in results, with no element of out written twice.
absl::Status ValidateAttention(const Attention& attention,
                               const Instruction& instruction);

}  // namespace partita::program

#endif  // PARTITA_RUNTIME_PROGRAM_VALIDATE_ATTENTION_H_
