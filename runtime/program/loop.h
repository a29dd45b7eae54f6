// Memory of a call that repeats (Call.repeats).
#ifndef PARTITA_RUNTIME_PROGRAM_LOOP_H_
#define PARTITA_RUNTIME_PROGRAM_LOOP_H_

#include <cstdint>

namespace partita::program {

// Bytes that a result of an iteration takes behind the callee's frame, whose
// size is a multiple of this alignment, too.
constexpr int64_t kLoopAlignment = 64;
constexpr int64_t LoopBytes(int64_t bytes) {
  return (bytes + kLoopAlignment - 1) / kLoopAlignment * kLoopAlignment;
}

}  // namespace partita::program

#endif  // PARTITA_RUNTIME_PROGRAM_LOOP_H_
