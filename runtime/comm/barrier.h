// A barrier for threads that may outnumber the processors: it spins briefly,
// then sleeps. A thread can stop waiting.
#ifndef PARTITA_RUNTIME_COMM_BARRIER_H_
#define PARTITA_RUNTIME_COMM_BARRIER_H_

#include <atomic>
#include <chrono>
#include <cstdint>

namespace partita::comm {

class Barrier {
 public:
  // Threads spin for about `spin` before they sleep.
  Barrier(int members, std::chrono::nanoseconds spin)
      : members_(static_cast<uint32_t>(members)), spin_(spin) {}

  // Registers this thread's arrival. Returns true for the last thread, which
  // releases the others; other threads pass `ticket` to Spin, Wait and Leave.
  bool Arrive(uint32_t& ticket);
  // Spins; returns true once all have arrived.
  bool Spin(uint32_t ticket) const;
  // Sleeps; returns true once all have arrived, false if that takes longer than
  // `slice`.
  bool Wait(uint32_t ticket, std::chrono::milliseconds slice);
  // Withdraws the arrival, so that no thread passes without this one. Returns
  // false if all have arrived already.
  bool Leave(uint32_t ticket);

 private:
  uint32_t Generation() const {
    return static_cast<uint32_t>(state_.load(std::memory_order_acquire) >> 32);
  }

  const uint32_t members_;
  const std::chrono::nanoseconds spin_;
  // Lower half: number of arrivals; upper half: number of completed rounds.
  alignas(64) std::atomic<uint64_t> state_{0};
  alignas(64) std::atomic<int> sleepers_{0};
};

}  // namespace partita::comm

#endif  // PARTITA_RUNTIME_COMM_BARRIER_H_
