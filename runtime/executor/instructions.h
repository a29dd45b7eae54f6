// Names and kinds of instructions.
#ifndef PARTITA_RUNTIME_EXECUTOR_INSTRUCTIONS_H_
#define PARTITA_RUNTIME_EXECUTOR_INSTRUCTIONS_H_

#include "runtime/program/program_generated.h"

namespace partita::executor {

// Empty if the instruction has no name.
inline const char* NameOf(const program::Instruction& instruction) {
  return instruction.name() == nullptr ? "" : instruction.name()->c_str();
}

// True for operations that only a library computes.
inline bool IsLibrary(program::Operation kind) {
  return kind == program::Operation::Gemm ||
         kind == program::Operation::GroupedGemm ||
         kind == program::Operation::Conv;
}

inline bool IsTransfer(program::Operation kind) {
  return kind == program::Operation::Send ||
         kind == program::Operation::Receive;
}

}  // namespace partita::executor

#endif  // PARTITA_RUNTIME_EXECUTOR_INSTRUCTIONS_H_
