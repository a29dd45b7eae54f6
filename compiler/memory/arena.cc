// Greedy placement in several orders. Each is quadratic in the number of
// buffers, which is at most a few thousand.
#include "compiler/memory/arena.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace partita::memory {
namespace {

int64_t alignUp(int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
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

// A buffer with an offset.
struct Placed {
  int64_t first = 0, last = 0;  // as in its lifetime
  int64_t offset = 0, end = 0;  // bytes
};

ArenaPlan place(const std::vector<Lifetime>& lifetimes,
                const std::vector<size_t>& order, Fit fit) {
  ArenaPlan plan;
  plan.offsets.resize(lifetimes.size());
  // Sorted by offset. Contiguous, since each new buffer reads all of them.
  std::vector<Placed> placed;
  placed.reserve(lifetimes.size());
  for (size_t next : order) {
    const Lifetime& lifetime = lifetimes[next];
    const int64_t bytes = alignUp(lifetime.bytes);
    int64_t best = -1, best_gap = INT64_MAX, free_from = 0;
    for (const Placed& other : placed) {
      if (lifetime.first > other.last || other.first > lifetime.last) continue;
      const int64_t gap = other.offset - free_from;
      if (gap >= bytes && gap < best_gap) {
        best = free_from, best_gap = gap;
        if (fit == Fit::kLowest) break;
      }
      free_from = std::max(free_from, other.end);
    }
    const int64_t offset = best >= 0 ? best : free_from;
    plan.offsets[next] = offset;
    plan.bytes = std::max(plan.bytes, offset + bytes);
    placed.insert(std::upper_bound(
                      placed.begin(), placed.end(), offset,
                      [](int64_t a, const Placed& b) { return a < b.offset; }),
                  {lifetime.first, lifetime.last, offset, offset + bytes});
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
      // An order that was tried before has the same result, and so do all
      // later ones.
      std::set<std::vector<size_t>> tried;
      for (size_t trial = 0; trial < trials && tried.insert(order).second;
           ++trial) {
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
