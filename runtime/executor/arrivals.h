// When a rank must wait for what others send it, and for what it sends.
#ifndef PARTITA_RUNTIME_EXECUTOR_ARRIVALS_H_
#define PARTITA_RUNTIME_EXECUTOR_ARRIVALS_H_

#include <cstdint>
#include <vector>

namespace partita::executor {

struct MemoryRange {
  int64_t begin = -1;  // an address; negative: memory that no receive writes to
  int64_t bytes = 0;
};

// What a step of a program reads and writes. A receive writes one range; where
// that is not known, the step keeps its place.
struct StepMemory {
  std::vector<MemoryRange> ranges;
  int sender = -1;    // of a receive
  int receiver = -1;  // of a send
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

// One of the two parts of a transfer.
struct TransferEvent {
  int64_t before = 0;  // which step, or their number
  bool begins = false;
  int64_t step = 0;  // of the transfer
  bool sends = false;
  int peer = 0;
};

// In the order in which they happen. Of receives, where sends do not wait.
std::vector<TransferEvent> PlanReceives(const std::vector<StepMemory>& steps);
// Of all transfers, where a send begins as it is copied to the next of its
// receiver's slots, so many of them, and ends before that slot is needed again.
std::vector<TransferEvent> PlanTransfers(const std::vector<StepMemory>& steps,
                                         int64_t slots);

// Whether programs that exchange as PlanTransfers says come to their ends,
// however fast each of them is, if a transfer ends when it has begun on both
// sides. Their numbers are what they call each other.
bool TransfersEnd(const std::vector<std::vector<TransferEvent>>& programs);

}  // namespace partita::executor

#endif  // PARTITA_RUNTIME_EXECUTOR_ARRIVALS_H_
