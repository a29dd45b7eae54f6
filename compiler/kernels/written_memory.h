// Tracks the writes of a block's threads that other readers do not see yet, so
// that the emulation finds a missing fence or meeting.
//
// Tensor cores and copies of boxes access shared memory through PTX's
// asynchronous proxy. They see a thread's write once that thread has fenced
// (partita_fence_tiles) and all threads have met afterwards. A thread that
// passes a turn (emit_turns.h) passes the writes to device memory that it has
// made itself, or that others had made when it met them. It must have awaited
// the turn before.
#ifndef PARTITA_COMPILER_KERNELS_WRITTEN_MEMORY_H_
#define PARTITA_COMPILER_KERNELS_WRITTEN_MEMORY_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "compiler/kernels/warpgroup_emulation.h"

namespace partita::kernels {

// Functions that return a string return an error message; empty on success.
class WrittenMemory {
 public:
  // `threads` is the size of the team.
  explicit WrittenMemory(int threads)
      : threads_(static_cast<size_t>(threads)) {}

  // --- Shared memory ---
  void writeShared(int thread, SharedRange range);
  void fence(int thread);
  // The asynchronous proxy accesses `range`; `what` names the access.
  std::string access(const char* what, const SharedRange& range) const;

  // --- Device memory and turns ---
  std::string writeDevice(int thread);
  // `place` identifies the turn's place.
  std::string awaitTurn(int thread, int64_t place, int32_t turn);
  std::string passTurn(int thread, int64_t place, int32_t turn);

  // All threads have met.
  void meet();

 private:
  struct Thread {
    std::vector<SharedRange> written, fenced;
    // Since the last meeting.
    bool wrote_device = false, awaited_turn = false;
  };
  // The first thread except this one for which `flag` holds; -1: none.
  int otherThan(int thread, bool Thread::* flag) const;

  std::vector<Thread> threads_;
  std::map<int64_t, int32_t> turns_;  // that the block has, by place
};

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_WRITTEN_MEMORY_H_
