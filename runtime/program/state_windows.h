// Plans which optimizer states are in memory at a time if they are stored in
// files. The compiler counts the buffers by the same plan that the runtime
// executes.
#ifndef PARTITA_RUNTIME_PROGRAM_STATE_WINDOWS_H_
#define PARTITA_RUNTIME_PROGRAM_STATE_WINDOWS_H_

#include <cstdint>
#include <vector>

namespace partita::program {

// States begin at multiples of this in files and buffers, as O_DIRECT needs.
inline constexpr int64_t kStatePage = 4096;
// Buffers, used in turn: one is computed on, one is read, one is written.
inline constexpr int kStateBuffers = 3;
// Windows are at least this large if no size is asked for, so that many small
// states are read at once.
inline constexpr int64_t kSmallestWindow = int64_t{1} << 20;

inline int64_t RoundToPage(int64_t bytes) {
  return (bytes + kStatePage - 1) / kStatePage * kStatePage;
}

// Consecutive work whose states are in one buffer at the same time.
struct StateWindow {
  std::vector<int> states;       // in ascending order
  std::vector<int64_t> offsets;  // in the buffer, parallel to states
  int64_t bytes = 0;
};

struct StatePlan {
  std::vector<StateWindow> windows;  // in the order of the work
  std::vector<int> window_of_unit;
  // Window i uses buffer i % kStateBuffers.
  std::vector<int64_t> buffer_bytes;

  int64_t Bytes() const;  // of all buffers
};

// `units` are the states that each unit of work uses, in the order of the work;
// a unit is a launch, or a piece of one. `bytes` are the sizes of all states.
// Consecutive units are in one window while their states fit its limit. The
// limit of a window is the larger of the largest unit and a third of
// `total_bytes` (kSmallestWindow if 0). So if units are too large, the result
// needs more than `total_bytes`.
StatePlan PlanStateWindows(const std::vector<std::vector<int>>& units,
                           const std::vector<int64_t>& bytes,
                           int64_t total_bytes);

}  // namespace partita::program

#endif  // PARTITA_RUNTIME_PROGRAM_STATE_WINDOWS_H_
