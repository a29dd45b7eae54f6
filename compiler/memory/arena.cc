// Greedy placement in several orders. Each is quadratic in the number of
// buffers, which is at most a few thousand.
#include "compiler/memory/arena.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace partita::memory {
namespace {

int64_t alignUp(int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

bool meet(const Lifetime& a, const Lifetime& b) {
  return a.first <= b.last && b.first <= a.last;
}

int64_t duration(const Lifetime& lifetime) {
  return lifetime.last - lifetime.first;
}

// Orders of placement. Largest first suits buffers that come and go with each
// layer. For the microbatches of a pipeline, first made, longest lived or last
// used first are better.
using Order = bool (*)(const Lifetime&, const Lifetime&);
constexpr Order kOrders[] = {
    [](const Lifetime& a, const Lifetime& b) { return a.bytes > b.bytes; },
    [](const Lifetime& a, const Lifetime& b) { return a.first < b.first; },
    [](const Lifetime& a, const Lifetime& b) {
      return duration(a) > duration(b);
    },
    [](const Lifetime& a, const Lifetime& b) { return a.last > b.last; }};

// Bounds on the trials per order, and on the buffers that they place. The
// largest programs have 7000 buffers on each of 16 devices, where a trial takes
// 15 ms per device.
constexpr size_t kMostTrials = 16, kMostPlaced = 12000;

// Each buffer goes to a gap between placed buffers that live at the same time:
// the lowest gap, or the tightest one.
enum class Fit { kLowest, kTightest };

ArenaPlan place(const std::vector<Lifetime>& lifetimes,
                const std::vector<size_t>& order, Fit fit) {
  ArenaPlan plan;
  plan.offsets.resize(lifetimes.size());
  std::vector<size_t> placed;  // sorted by offset
  for (size_t next : order) {
    const int64_t bytes = alignUp(lifetimes[next].bytes);
    int64_t best = -1, best_gap = INT64_MAX, free_from = 0;
    for (size_t other : placed) {
      if (!meet(lifetimes[next], lifetimes[other])) continue;
      const int64_t gap = plan.offsets[other] - free_from;
      if (gap >= bytes && gap < best_gap) {
        best = free_from, best_gap = gap;
        if (fit == Fit::kLowest) break;
      }
      free_from = std::max(
          free_from, plan.offsets[other] + alignUp(lifetimes[other].bytes));
    }
    plan.offsets[next] = best >= 0 ? best : free_from;
    plan.bytes = std::max(plan.bytes, plan.offsets[next] + bytes);
    auto where = std::upper_bound(
        placed.begin(), placed.end(), next,
        [&](size_t a, size_t b) { return plan.offsets[a] < plan.offsets[b]; });
    placed.insert(where, next);
  }
  return plan;
}

// Moves the buffer at the arena's end to the front of the order.
void promoteHighest(const std::vector<Lifetime>& lifetimes,
                    const ArenaPlan& plan, std::vector<size_t>& order) {
  const auto highest = std::find_if(order.begin(), order.end(), [&](size_t i) {
    return plan.offsets[i] + alignUp(lifetimes[i].bytes) == plan.bytes;
  });
  std::rotate(order.begin(), highest, highest + 1);
}

}  // namespace

ArenaPlan planArena(const std::vector<Lifetime>& lifetimes) {
  const int64_t bound = arenaLowerBound(lifetimes);
  const size_t trials = std::clamp<size_t>(
      kMostPlaced / std::max<size_t>(lifetimes.size(), 1), 1, kMostTrials);
  ArenaPlan best;
  best.bytes = INT64_MAX;
  for (const Order before : kOrders) {
    std::vector<size_t> sorted(lifetimes.size());
    std::iota(sorted.begin(), sorted.end(), 0);
    std::stable_sort(sorted.begin(), sorted.end(), [&](size_t a, size_t b) {
      return before(lifetimes[a], lifetimes[b]);
    });
    for (const Fit fit : {Fit::kTightest, Fit::kLowest}) {
      std::vector<size_t> order = sorted;
      for (size_t trial = 0; trial < trials; ++trial) {
        ArenaPlan plan = place(lifetimes, order, fit);
        if (plan.bytes < best.bytes) best = plan;
        if (best.bytes == bound) return best;
        promoteHighest(lifetimes, plan, order);
      }
    }
  }
  return best;
}

int64_t arenaLowerBound(const std::vector<Lifetime>& lifetimes) {
  std::map<int64_t, int64_t> change;
  for (const Lifetime& lifetime : lifetimes) {
    change[lifetime.first] += alignUp(lifetime.bytes);
    change[lifetime.last + 1] -= alignUp(lifetime.bytes);
  }
  int64_t now = 0, most = 0;
  for (const auto& [step, bytes] : change) most = std::max(most, now += bytes);
  return most;
}

}  // namespace partita::memory
