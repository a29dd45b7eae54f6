// A barrier for threads that may not all have a processor: it spins briefly,
// then sleeps. Waiting can be given up.
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

  // A thread's arrival: true for the last one, which lets the others go;
  // others keep `ticket` for what follows.
  bool Arrive(uint32_t& ticket);
  // Spins; true once all have arrived.
  bool Spin(uint32_t ticket) const;
  // Sleeps; true once all have arrived, false if that takes longer than
  // `slice`.
  bool Wait(uint32_t ticket, std::chrono::milliseconds slice);
  // Takes the arrival back: nobody passes without this thread from then on.
  // False if all have arrived already.
  bool Leave(uint32_t ticket);

 private:
  uint32_t Generation() const {
    return static_cast<uint32_t>(state_.load(std::memory_order_acquire) >> 32);
  }

  const uint32_t members_;
  const std::chrono::nanoseconds spin_;
  // How many have arrived, and above it how often all have.
  alignas(64) std::atomic<uint64_t> state_{0};
  alignas(64) std::atomic<int> sleepers_{0};
};

}  // namespace partita::comm

#endif  // PARTITA_RUNTIME_COMM_BARRIER_H_
