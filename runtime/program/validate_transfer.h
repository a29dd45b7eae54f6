// Checks sends and receives, singly and all together.
#ifndef PARTITA_RUNTIME_PROGRAM_VALIDATE_TRANSFER_H_
#define PARTITA_RUNTIME_PROGRAM_VALIDATE_TRANSFER_H_

#include <cstdint>

#include "absl/status/status.h"
#include "runtime/program/program_generated.h"

namespace partita::program {

// (V14) for one instruction, which is a send or a receive.
absl::Status ValidateTransfer(const Program& program,
                              const Instruction& instruction);

// (V14): every receive of every entry matches a send of its type and shape,
// every send matches a receive, and no entries wait for each other. The entries
// and functions have been checked.
absl::Status ValidateTransfers(const Program& program);

}  // namespace partita::program

#endif  // PARTITA_RUNTIME_PROGRAM_VALIDATE_TRANSFER_H_
