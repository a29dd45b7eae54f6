// Memory of a call that repeats (Call.repeats).
#ifndef PARTITA_RUNTIME_PROGRAM_LOOP_H_
#define PARTITA_RUNTIME_PROGRAM_LOOP_H_

#include <cstdint>

#include "runtime/program/program_generated.h"

namespace partita::program {

// Bytes that a result of an iteration takes behind the callee's frame, whose
// size is a multiple of this alignment, too.
constexpr int64_t kLoopAlignment = 64;
constexpr int64_t LoopBytes(int64_t bytes) {
  return (bytes + kLoopAlignment - 1) / kLoopAlignment * kLoopAlignment;
}

// Bytes of the caller's frame that a call uses from its frame_offset on: the
// callee's frame and, if the call repeats, the results of an iteration.
// Only for programs that passed ValidateProgram.
inline int64_t FrameBytesOf(const Program& program,
                            const Instruction& instruction) {
  const Call& call = *instruction.operation_as_Call();
  int64_t bytes = program.functions()
                      ->Get(static_cast<unsigned>(call.function()))
                      ->frame_bytes();
  if (!call.repeats()) return bytes;
  const int count = static_cast<int>(instruction.operands()->size());
  for (int i = count - instruction.outputs(); i < count; ++i)
    bytes += LoopBytes(
        instruction.operands()->Get(static_cast<unsigned>(i))->bytes());
  return bytes;
}

// Calls that repeat, in all functions.
inline int64_t CountLoops(const Program& program) {
  int64_t loops = 0;
  for (const Function* function : *program.functions())
    for (unsigned i = 0; function->body() && i < function->body()->size();
         ++i) {
      const Call* call = function->body()->Get(i)->operation_as_Call();
      loops += call != nullptr && call->repeats();
    }
  return loops;
}

}  // namespace partita::program

#endif  // PARTITA_RUNTIME_PROGRAM_LOOP_H_
