// Greedy-by-size placement; quadratic in the number of buffers, which is at
// most a few thousand.
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

}  // namespace

ArenaPlan planArena(const std::vector<Lifetime>& lifetimes) {
  ArenaPlan plan;
  plan.offsets.resize(lifetimes.size());
  std::vector<size_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return lifetimes[a].bytes > lifetimes[b].bytes;
  });

  std::vector<size_t> placed;  // sorted by offset
  for (size_t next : order) {
    const int64_t bytes = alignUp(lifetimes[next].bytes);
    int64_t best = -1, best_gap = INT64_MAX, free_from = 0;
    for (size_t other : placed) {
      if (!meet(lifetimes[next], lifetimes[other])) continue;
      const int64_t gap = plan.offsets[other] - free_from;
      if (gap >= bytes && gap < best_gap) best = free_from, best_gap = gap;
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
