// Joins units of work greedily, in order.
#include "runtime/program/state_windows.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace partita::program {
namespace {

int64_t BytesOf(const std::set<int>& states,
                const std::vector<int64_t>& bytes) {
  int64_t sum = 0;
  for (const int state : states)
    sum += RoundToPage(bytes[static_cast<size_t>(state)]);
  return sum;
}

StateWindow WindowOf(const std::set<int>& states,
                     const std::vector<int64_t>& bytes) {
  StateWindow window;
  for (const int state : states) {
    window.states.push_back(state);
    window.offsets.push_back(window.bytes);
    window.bytes += RoundToPage(bytes[static_cast<size_t>(state)]);
  }
  return window;
}

}  // namespace

int64_t StatePlan::Bytes() const {
  return std::accumulate(buffer_bytes.begin(), buffer_bytes.end(), int64_t{0});
}

StatePlan PlanStateWindows(const std::vector<std::vector<int>>& units,
                           const std::vector<int64_t>& bytes,
                           int64_t total_bytes) {
  int64_t limit =
      total_bytes > 0 ? total_bytes / kStateBuffers : kSmallestWindow;
  for (const std::vector<int>& unit : units)
    limit = std::max(limit, BytesOf({unit.begin(), unit.end()}, bytes));
  StatePlan plan;
  std::set<int> open;
  const auto close = [&] {
    if (!open.empty()) plan.windows.push_back(WindowOf(open, bytes));
    open.clear();
  };
  for (const std::vector<int>& unit : units) {
    std::set<int> joined = open;
    joined.insert(unit.begin(), unit.end());
    if (BytesOf(joined, bytes) > limit) {
      close();
      joined = {unit.begin(), unit.end()};
    }
    open = std::move(joined);
    plan.window_of_unit.push_back(static_cast<int>(plan.windows.size()));
  }
  close();
  plan.buffer_bytes.resize(kStateBuffers);
  for (size_t i = 0; i < plan.windows.size(); ++i) {
    int64_t& buffer = plan.buffer_bytes[i % kStateBuffers];
    buffer = std::max(buffer, plan.windows[i].bytes);
  }
  return plan;
}

}  // namespace partita::program
