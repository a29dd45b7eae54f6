// Counts arrivals and bytes; copies boxes, swizzled.
#include "compiler/kernels/barrier_emulation.h"

#include <algorithm>
#include <cstring>

namespace partita::kernels {
namespace {

constexpr int64_t kElementBytes = 2, kRowBytes = 128;
// The mark that a barrier has in memory, and the byte that fills a box until it
// arrives: it makes NaNs.
constexpr char kMark[] = "barrier";
constexpr int kPoison = 0xff;
constexpr int kMostArrivals = (1 << 20) - 1;

template <typename Clock>
void mergeClock(Clock& clock, const Clock& other) {
  for (size_t i = 0; i < clock.size(); ++i)
    clock[i] = std::max(clock[i], other[i]);
}

// Address of byte `at` of a swizzled box at `to`. Shared memory's addresses
// equal the process's up to a multiple of 1024.
char* placeOf(char* to, int64_t at) {
  uintptr_t address = reinterpret_cast<uintptr_t>(to) + at;
  address ^= (address >> 7 & 7) << 4;
  return reinterpret_cast<char*>(address);
}

// Null outside the tensor.
const char* elementOf(const EmulatedMap& map,
                      const std::array<int64_t, 4>& index) {
  const char* element = map.first;
  for (size_t i = 0; i < 4; ++i) {
    if (index[i] < 0 || index[i] >= map.shape[i]) return nullptr;
    element += index[i] * (i < 3 ? map.strides[i] : kElementBytes);
  }
  return element;
}

}  // namespace

BarrierEmulation::Barrier* BarrierEmulation::find(const char* at, int thread,
                                                  std::string& wrong) {
  const std::string who = "thread " + std::to_string(thread);
  const auto found = barriers_.find(at);
  if (found == barriers_.end())
    wrong = who + " uses a barrier where there is none";
  else if (std::memcmp(at, kMark, sizeof(kMark)) != 0)
    wrong = who + " uses a barrier that something else was written over";
  else if (found->second.maker != thread && !found->second.seen)
    wrong = who +
            " uses a barrier that another thread has made, and they have "
            "not met";
  return wrong.empty() ? &found->second : nullptr;
}

void BarrierEmulation::finish(Barrier& barrier) {
  if (barrier.missing > 0 || barrier.bytes != 0) return;
  barrier.missing = barrier.arrivals;
  barrier.passed = barrier.arrived;
  ++barrier.phase;
  ++phases_;
}

std::string BarrierEmulation::make(char* at, int thread, int arrivals) {
  if (reinterpret_cast<uintptr_t>(at) % 8 != 0 || arrivals < 1 ||
      arrivals > kMostArrivals)
    return "a barrier without a place of 8 bytes, or without arrivals";
  Barrier barrier = {};
  barrier.maker = thread;
  barrier.made = meetings_;
  barrier.arrivals = barrier.missing = arrivals;
  if (!barriers_.emplace(at, barrier).second)
    return "a barrier is made where there is one";
  std::memcpy(at, kMark, sizeof(kMark));
  return "";
}

std::string BarrierEmulation::end(const char* at, int thread) {
  std::string wrong;
  if (!find(at, thread, wrong)) return wrong;
  for (const Pending& pending : pending_)
    if (pending.barrier == at)
      return "a barrier ends before its boxes have come";
  barriers_.erase(at);
  return "";
}

std::string BarrierEmulation::arrive(const char* at, int thread,
                                     int64_t bytes) {
  std::string wrong;
  Barrier* barrier = find(at, thread, wrong);
  if (!barrier) return wrong;
  if (barrier->missing == 0)
    return "thread " + std::to_string(thread) +
           " arrives at a barrier at which all have arrived: " + describe(at);
  mergeClock(barrier->arrived, clockOf(thread));
  barrier->bytes += bytes;
  --barrier->missing;
  finish(*barrier);
  return "";
}

std::string BarrierEmulation::isOver(const char* at, int thread, int parity,
                                     bool& is_over) {
  std::string wrong;
  Barrier* barrier = find(at, thread, wrong);
  if (!barrier) return wrong;
  is_over = barrier->phase % 2 != parity;
  if (is_over) mergeClock(clockOf(thread), barrier->passed);
  return "";
}

std::string BarrierEmulation::copy(char* to, const char* barrier, int thread,
                                   const EmulatedMap& map,
                                   const std::array<int64_t, 4>& at) {
  std::string wrong;
  Barrier* found = find(barrier, thread, wrong);
  if (!found) return wrong;
  if (!found->fenced)
    return "a box for a barrier that was made without a fence";
  const auto unfenced =
      std::find_if(fenced_.begin(), fenced_.end(),
                   [&](int64_t fence) { return fence < found->made; });
  if (unfenced != fenced_.end())
    return "a box over memory that thread " +
           std::to_string(unfenced - fenced_.begin()) +
           " may have written without a fence";
  if (reinterpret_cast<uintptr_t>(to) % kRowBytes != 0)
    return "a box whose place is no multiple of 128 bytes";
  if (map.box[3] * kElementBytes != kRowBytes)
    return "a box whose rows are not 128 bytes, as the swizzle wants them";
  const char* const end = to + map.bytes();
  for (const Read& read : reads_)
    for (size_t warp = 0; warp < kWarps; ++warp)
      if (read.range.begin < end && to < read.range.end &&
          clockOf(thread)[warp] < read.at[warp])
        return "a box over memory that warp " + std::to_string(warp) +
               " may still read";
  std::memset(to, kPoison, static_cast<size_t>(map.bytes()));
  pending_.push_back({to, barrier, map, at});
  return "";
}

void BarrierEmulation::fence(int thread) {
  fenced_[static_cast<size_t>(thread)] = meetings_;
  for (auto& [at, barrier] : barriers_)
    barrier.fenced |= barrier.maker == thread;
}

void BarrierEmulation::meet() {
  ++meetings_;
  for (auto& [at, barrier] : barriers_) barrier.seen = true;
  reads_.clear();  // all threads know them now
}

void BarrierEmulation::read(const SharedRange& range) {
  Read read = {range, {}};
  for (size_t warp = 0; warp < kWarps; ++warp)
    read.at[warp] = ++clocks_[warp][warp];
  reads_.push_back(read);
}

bool BarrierEmulation::completeLast(const char* at, std::string& wrong) {
  auto last = pending_.rbegin();
  while (last != pending_.rend() && last->barrier != at) ++last;
  if (last == pending_.rend()) return false;
  const Pending pending = *last;
  pending_.erase(std::next(last).base());
  const EmulatedMap& map = pending.map;
  int64_t byte = 0;
  std::array<int64_t, 4> i = pending.at;
  const auto loop = [&](const auto& self, size_t dim) -> void {
    for (int32_t step = 0; step < map.box[dim]; ++step) {
      i[dim] = pending.at[dim] + step;
      if (dim < 3) {
        self(self, dim + 1);
        continue;
      }
      const char* from = elementOf(map, i);
      char* const to = placeOf(pending.to, byte);
      from ? std::memcpy(to, from, kElementBytes)
           : std::memset(to, 0, kElementBytes);
      byte += kElementBytes;
    }
  };
  loop(loop, 0);
  Barrier& barrier = barriers_.at(at);
  barrier.bytes -= map.bytes();
  if (barrier.bytes < 0)
    wrong = "more bytes have come than were expected: " + describe(at);
  finish(barrier);
  return true;
}

std::string BarrierEmulation::describe(const char* at) const {
  const Barrier& barrier = barriers_.at(at);
  return "phase " + std::to_string(barrier.phase) + ", " +
         std::to_string(barrier.missing) + " of " +
         std::to_string(barrier.arrivals) + " arrivals and " +
         std::to_string(barrier.bytes) + " bytes missing";
}

}  // namespace partita::kernels
