// When a rank must wait for what others send it.
#ifndef PARTITA_RUNTIME_EXECUTOR_ARRIVALS_H_
#define PARTITA_RUNTIME_EXECUTOR_ARRIVALS_H_

#include <cstdint>
#include <vector>

namespace partita::executor {

struct MemoryRange {
  const char* begin = nullptr;  // null: memory that no receive writes to
  int64_t bytes = 0;
};

// What a step of a program reads and writes. A receive writes one range; where
// that is null, it is not known, and the step keeps its place.
struct StepMemory {
  std::vector<MemoryRange> ranges;
  int sender = -1;  // of a receive
};

// A receive in two parts. Its memory may be written to as soon as no step
// before needs it, and must have been when a step behind does, so what is sent
// travels while the rank computes. Those of one sender keep their order in
// both.
struct Arrival {
  int64_t step = 0;           // of the receive
  int64_t expect_before = 0;  // a step, at most `step`
  int64_t await_before = 0;   // a step, or their number; above `step`
};

// In the order of the receives.
std::vector<Arrival> PlanArrivals(const std::vector<StepMemory>& steps);

}  // namespace partita::executor

#endif  // PARTITA_RUNTIME_EXECUTOR_ARRIVALS_H_
