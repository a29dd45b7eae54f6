// Plans when a rank must wait for receives and for its sends.
#ifndef PARTITA_RUNTIME_EXECUTOR_ARRIVALS_H_
#define PARTITA_RUNTIME_EXECUTOR_ARRIVALS_H_

#include <cstdint>
#include <vector>

namespace partita::executor {

struct MemoryRange {
  int64_t begin = -1;  // an address; negative: no receive writes to this memory
  int64_t bytes = 0;
};

// Memory that one step reads and writes. A receive writes one range. If that
// range is unknown (negative), the receive keeps its place.
struct StepMemory {
  std::vector<MemoryRange> ranges;
  int sender = -1;    // of a receive; else -1
  int receiver = -1;  // of a send; else -1
};

// A transfer split into two parts. The sender may fill the memory of a receive
// once no earlier step needs it, and must have filled it before the next step
// that uses it, so data travels while the rank computes. Receives from one
// sender keep their order in both parts.
struct Arrival {
  int64_t step = 0;           // index of the receive
  int64_t expect_before = 0;  // step index, at most `step`
  int64_t await_before = 0;   // step index or the number of steps; above `step`
};

// In the order of the receives.
std::vector<Arrival> PlanArrivals(const std::vector<StepMemory>& steps);

// The beginning or end of a transfer.
struct TransferEvent {
  int64_t before = 0;  // step index or the number of steps
  bool begins = false;
  int64_t step = 0;  // index of the transfer
  bool sends = false;
  int peer = 0;
};

// Events of receives only, in the order in which they happen. For communicators
// whose sends do not wait.
std::vector<TransferEvent> PlanReceives(const std::vector<StepMemory>& steps);
// Events of all transfers. A send begins when it is copied to the next of its
// receiver's `slots` slots, used in turn, and ends before that slot is needed
// again.
std::vector<TransferEvent> PlanTransfers(const std::vector<StepMemory>& steps,
                                         int64_t slots);

// True if every program reaches its end, at any relative speed, when they
// exchange as PlanTransfers says and a transfer ends once it has begun on both
// sides. TransferEvent::peer is an index into `programs`.
bool TransfersComplete(const std::vector<std::vector<TransferEvent>>& programs);

}  // namespace partita::executor

#endif  // PARTITA_RUNTIME_EXECUTOR_ARRIVALS_H_
