// Places buffers of known size and lifetime in one arena.
//
// Plain data, no IR. Greedy (Pisarchyk and Lee, "Efficient Memory Management
// for Deep Neural Net Inference", 2020): one buffer after the other, each in a
// gap between placed buffers that live at the same time. The order decides how
// much memory stays unused. Several orders are tried, each again with the
// buffer that ended highest in front, and the smallest arena is taken.
#ifndef PARTITA_COMPILER_MEMORY_ARENA_H_
#define PARTITA_COMPILER_MEMORY_ARENA_H_

#include <cstdint>
#include <vector>

namespace partita::memory {

inline constexpr int64_t kAlignment = 64;

// A buffer lives from step `first` to step `last`, both included.
struct Lifetime {
  int64_t bytes = 0;
  int64_t first = 0;
  int64_t last = 0;
};

struct ArenaPlan {
  std::vector<int64_t> offsets;  // one per lifetime, multiples of kAlignment
  int64_t bytes = 0;             // of the whole arena, a multiple of kAlignment
};

ArenaPlan planArena(const std::vector<Lifetime>& lifetimes);

// Lower bound of all plans: the peak of live bytes.
int64_t arenaLowerBound(const std::vector<Lifetime>& lifetimes);

}  // namespace partita::memory

#endif  // PARTITA_COMPILER_MEMORY_ARENA_H_
