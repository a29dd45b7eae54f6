// The generation (upper half of the state) is a futex, since C++17 cannot wait
// on atomics.
#include "runtime/comm/barrier.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <climits>

namespace partita::comm {
namespace {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "the upper half comes second in memory");

constexpr uint64_t kGeneration = uint64_t{1} << 32;

long Futex(std::atomic<uint64_t>& state, int operation, uint32_t value,
           const timespec* timeout) {
  return syscall(SYS_futex, reinterpret_cast<uint32_t*>(&state) + 1, operation,
                 value, timeout, nullptr, 0);
}

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

}  // namespace

bool Barrier::Arrive(uint32_t& ticket) {
  uint64_t state = state_.load(std::memory_order_relaxed);
  while (true) {
    ticket = static_cast<uint32_t>(state >> 32);
    const bool last = static_cast<uint32_t>(state) + 1 == members_;
    const uint64_t next =
        last ? (state & ~(kGeneration - 1)) + kGeneration : state + 1;
    if (!state_.compare_exchange_weak(state, next, std::memory_order_seq_cst))
      continue;
    if (last && sleepers_.load(std::memory_order_seq_cst) > 0)
      Futex(state_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr);
    return last;
  }
}

bool Barrier::Spin(uint32_t ticket) const {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + spin_;
  do {
    for (int i = 0; i < 64; ++i) {
      if (Generation() != ticket) return true;
      Pause();
    }
  } while (Clock::now() < end);
  return false;
}

bool Barrier::Wait(uint32_t ticket, std::chrono::milliseconds slice) {
  const timespec timeout = {slice.count() / 1000,
                            slice.count() % 1000 * 1000000};
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  // Returns at once if the generation has moved on.
  Futex(state_, FUTEX_WAIT_PRIVATE, ticket, &timeout);
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
  return Generation() != ticket;
}

bool Barrier::Leave(uint32_t ticket) {
  uint64_t state = state_.load(std::memory_order_relaxed);
  while (static_cast<uint32_t>(state >> 32) == ticket) {
    if (state_.compare_exchange_weak(state, state - 1,
                                     std::memory_order_seq_cst))
      return true;
  }
  std::atomic_thread_fence(std::memory_order_acquire);
  return false;
}

}  // namespace partita::comm
