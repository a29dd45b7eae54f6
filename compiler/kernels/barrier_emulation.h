// Emulates sm_90's barriers in shared memory and the copies that arrive at
// them, in plain loops, so that tests need no GPU. Follows PTX's description of
// mbarrier and cp.async.bulk.tensor.
//
// Copies of boxes are asynchronous. A request fills the destination with NaNs;
// the data arrives when the emulation is told to complete the copy. A thread
// that reads too early gets NaNs. Each warp tracks which reads of the others it
// knows to be finished: a thread that requests a box must have waited for all
// warps whose warpgroup products read the destination.
//
// Copies access memory through PTX's asynchronous proxy, so a thread's earlier
// accesses of the destination are ordered before a copy only by a fence of that
// thread. The emulation does not track where threads read. Instead every thread
// must have fenced since the last meeting of all threads before the barrier was
// made. written_memory.h tracks where they write.
#ifndef PARTITA_COMPILER_KERNELS_BARRIER_EMULATION_H_
#define PARTITA_COMPILER_KERNELS_BARRIER_EMULATION_H_

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "compiler/kernels/warpgroup_emulation.h"

namespace partita::kernels {

// The emulated tensor map (tensor_map.h) that generated code receives: four
// dimensions, 16-bit elements.
struct alignas(128) EmulatedMap {
  const char* first = nullptr;  // address of the first element
  int64_t shape[4] = {};
  int64_t strides[3] = {};  // bytes, of the outer three dimensions
  int32_t box[4] = {};

  // Bytes of a box.
  int64_t bytes() const {
    return int64_t{2} * box[0] * box[1] * box[2] * box[3];
  }
};

// Functions return an error message; empty on success.
class BarrierEmulation {
 public:
  // `threads` is the size of the team.
  explicit BarrierEmulation(int threads)
      : fenced_(static_cast<size_t>(threads), -1) {}

  std::string make(char* at, int thread, int arrivals);
  std::string end(const char* at, int thread);
  // Adds `bytes` to the bytes expected in this phase, then arrives.
  std::string arrive(const char* at, int thread, int64_t bytes);
  // Sets `is_over` if a wait for a phase of this parity ends.
  std::string isOver(const char* at, int thread, int parity, bool& is_over);
  // Requests a copy of the box of `map` at element `at`.
  std::string copy(char* to, const char* barrier, int thread,
                   const EmulatedMap& map, const std::array<int64_t, 4>& at);

  // Makes this thread's new barriers and earlier writes visible to copies.
  void fence(int thread);
  // All threads have met: each sees the earlier effects of the others.
  void meet();
  // All warps have read `range`, each at its own time.
  void read(const SharedRange& range);
  // Completes the latest pending copy that is to arrive at this barrier.
  // Returns false if there is none.
  bool completeLast(const char* at, std::string& wrong);

  bool isIdle() const { return pending_.empty(); }
  int64_t phases() const { return phases_; }  // completed so far
  std::string describe(const char* at) const;

 private:
  // A vector clock: the number of reads of each warp that are known to be
  // finished.
  static constexpr size_t kWarps = 4;
  using Clock = std::array<int64_t, kWarps>;
  struct Read {
    SharedRange range;
    Clock at;
  };
  struct Barrier {
    int maker;
    int64_t made;  // value of meetings_ when it was made
    bool fenced = false, seen = false;
    int arrivals;       // needed per phase
    int missing;        // in the current phase
    int64_t bytes = 0;  // expected in the current phase
    int64_t phase = 0;
    // The clocks of all arrivals so far, and those at the end of the last
    // phase.
    Clock arrived = {}, passed = {};
  };
  struct Pending {
    char* to;
    const char* barrier;
    EmulatedMap map;
    std::array<int64_t, 4> at;
  };

  // Returns the barrier at this address if `thread` may use it; else null, with
  // the reason in `wrong`.
  Barrier* find(const char* at, int thread, std::string& wrong);
  void finish(Barrier& barrier);
  Clock& clockOf(int thread) { return clocks_[thread / 32]; }

  std::map<const char*, Barrier> barriers_;
  std::vector<Pending> pending_;
  std::vector<Read> reads_;
  std::array<Clock, kWarps> clocks_ = {};
  int64_t meetings_ = 0;  // of all threads, so far
  // Per thread, the value of meetings_ at its last fence; -1: none.
  std::vector<int64_t> fenced_;
  int64_t phases_ = 0;
};

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_BARRIER_EMULATION_H_
