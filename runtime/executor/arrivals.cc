// From each receive to both sides, up to the next step that uses its memory.
#include "runtime/executor/arrivals.h"

#include <algorithm>
#include <map>

namespace partita::executor {
namespace {

bool Overlap(const MemoryRange& a, const MemoryRange& b) {
  return a.begin != nullptr && b.begin != nullptr &&
         a.begin < b.begin + b.bytes && b.begin < a.begin + a.bytes;
}

bool Uses(const StepMemory& step, const MemoryRange& range) {
  return std::any_of(
      step.ranges.begin(), step.ranges.end(),
      [&](const MemoryRange& other) { return Overlap(other, range); });
}

const MemoryRange& TargetOf(const StepMemory& receive) {
  return receive.ranges.front();
}

// Later ones of a sender are not awaited earlier.
void PlanAwaits(const std::vector<StepMemory>& steps,
                std::vector<Arrival>& arrivals) {
  std::map<int, int64_t> next;  // by sender
  for (auto arrival = arrivals.rbegin(); arrival != arrivals.rend();
       ++arrival) {
    const StepMemory& receive = steps[static_cast<size_t>(arrival->step)];
    const MemoryRange& target = TargetOf(receive);
    const auto count = static_cast<int64_t>(steps.size());
    int64_t& limit = next.try_emplace(receive.sender, count).first->second;
    int64_t step = arrival->step + 1;
    while (target.begin != nullptr && step < limit &&
           !Uses(steps[static_cast<size_t>(step)], target))
      ++step;
    limit = arrival->await_before = step;
  }
}

// Earlier ones of a sender are not expected later. A receive uses its memory
// until it is awaited.
void PlanExpects(const std::vector<StepMemory>& steps,
                 std::vector<Arrival>& arrivals) {
  std::map<int64_t, int64_t> awaited;  // by step
  std::map<int, int64_t> last;         // by sender
  for (Arrival& arrival : arrivals) {
    const StepMemory& receive = steps[static_cast<size_t>(arrival.step)];
    const MemoryRange& target = TargetOf(receive);
    int64_t& limit = last[receive.sender];
    int64_t step = arrival.step;
    while (target.begin != nullptr && step > limit &&
           !Uses(steps[static_cast<size_t>(step - 1)], target))
      --step;
    // What came before this step may be on its way still.
    for (const auto& [other, end] : awaited)
      if (other < step &&
          Overlap(TargetOf(steps[static_cast<size_t>(other)]), target))
        step = std::max(step, end);
    limit = arrival.expect_before = step;
    awaited[arrival.step] = arrival.await_before;
  }
}

}  // namespace

std::vector<Arrival> PlanArrivals(const std::vector<StepMemory>& steps) {
  std::vector<Arrival> arrivals;
  for (size_t i = 0; i < steps.size(); ++i)
    if (steps[i].sender >= 0) {
      arrivals.emplace_back();
      arrivals.back().step = static_cast<int64_t>(i);
    }
  PlanAwaits(steps, arrivals);
  PlanExpects(steps, arrivals);
  return arrivals;
}

}  // namespace partita::executor
