// For each receive, searches both directions up to the nearest step that uses
// its memory; for each send, searches for the next send that takes its slot.
#include "runtime/executor/arrivals.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>

namespace partita::executor {
namespace {

bool Overlap(const MemoryRange& a, const MemoryRange& b) {
  return a.begin >= 0 && b.begin >= 0 && a.begin < b.begin + b.bytes &&
         b.begin < a.begin + a.bytes;
}

bool Uses(const StepMemory& step, const MemoryRange& range) {
  return std::any_of(
      step.ranges.begin(), step.ranges.end(),
      [&](const MemoryRange& other) { return Overlap(other, range); });
}

const MemoryRange& TargetOf(const StepMemory& receive) {
  return receive.ranges.front();
}

// Receives from one sender are awaited in order.
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
    while (target.begin >= 0 && step < limit &&
           !Uses(steps[static_cast<size_t>(step)], target))
      ++step;
    limit = arrival->await_before = step;
  }
}

// Receives from one sender are expected in order. A receive uses its memory
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
    while (target.begin >= 0 && step > limit &&
           !Uses(steps[static_cast<size_t>(step - 1)], target))
      --step;
    // Earlier receives into this memory may still be in flight.
    for (const auto& [other, end] : awaited)
      if (other < step &&
          Overlap(TargetOf(steps[static_cast<size_t>(other)]), target))
        step = std::max(step, end);
    limit = arrival.expect_before = step;
    awaited[arrival.step] = arrival.await_before;
  }
}

std::vector<Arrival> PlanSends(const std::vector<StepMemory>& steps,
                               int64_t slots) {
  std::vector<Arrival> sends;
  std::map<int, std::vector<size_t>> by_receiver;  // into sends
  for (size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].receiver < 0) continue;
    std::vector<size_t>& all = by_receiver[steps[i].receiver];
    const auto step = static_cast<int64_t>(i);
    if (static_cast<int64_t>(all.size()) >= slots)
      sends[all[all.size() - static_cast<size_t>(slots)]].await_before = step;
    all.push_back(sends.size());
    sends.push_back({step, step, static_cast<int64_t>(steps.size())});
  }
  return sends;
}

void AddEvents(const std::vector<StepMemory>& steps, const Arrival& transfer,
               std::vector<TransferEvent>& events) {
  const StepMemory& step = steps[static_cast<size_t>(transfer.step)];
  const bool sends = step.receiver >= 0;
  const int peer = sends ? step.receiver : step.sender;
  events.push_back({transfer.expect_before, true, transfer.step, sends, peer});
  events.push_back({transfer.await_before, false, transfer.step, sends, peer});
}

// At equal positions, transfers end before others begin, which frees their
// memory.
void Sort(std::vector<TransferEvent>& events) {
  std::sort(events.begin(), events.end(),
            [](const TransferEvent& a, const TransferEvent& b) {
              return std::tie(a.before, a.begins, a.step) <
                     std::tie(b.before, b.begins, b.step);
            });
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

std::vector<TransferEvent> PlanReceives(const std::vector<StepMemory>& steps) {
  std::vector<TransferEvent> events;
  for (const Arrival& arrival : PlanArrivals(steps))
    AddEvents(steps, arrival, events);
  Sort(events);
  return events;
}

std::vector<TransferEvent> PlanTransfers(const std::vector<StepMemory>& steps,
                                         int64_t slots) {
  std::vector<TransferEvent> events;
  for (const Arrival& receive : PlanArrivals(steps))
    AddEvents(steps, receive, events);
  for (const Arrival& send : PlanSends(steps, slots))
    AddEvents(steps, send, events);
  Sort(events);
  return events;
}

// Simulates the programs in one arbitrary order. This decides for all orders,
// since no program's progress can block another's.
bool TransfersComplete(
    const std::vector<std::vector<TransferEvent>>& programs) {
  struct Party {
    size_t next = 0;  // index of its next event
    // Number of the transfer of each step, counted per sender and receiver.
    std::map<int64_t, int64_t> number;
  };
  std::vector<Party> parties(programs.size());
  // Transfers begun at the sender and at the receiver, by (sender, receiver).
  std::map<std::pair<int, int>, std::array<int64_t, 2>> begun;
  for (bool moves = true; moves;) {
    moves = false;
    for (size_t own = 0; own < parties.size(); ++own) {
      Party& party = parties[own];
      for (; party.next < programs[own].size(); ++party.next) {
        const TransferEvent& event = programs[own][party.next];
        const int here = static_cast<int>(own);
        std::array<int64_t, 2>& both =
            begun[event.sends ? std::pair(here, event.peer)
                              : std::pair(event.peer, here)];
        if (event.begins) {
          party.number[event.step] = both[event.sends ? 0 : 1]++;
        } else if (std::min(both[0], both[1]) <= party.number[event.step]) {
          break;
        }
        moves = true;
      }
    }
  }
  for (size_t i = 0; i < parties.size(); ++i)
    if (parties[i].next < programs[i].size()) return false;
  return true;
}

}  // namespace partita::executor
