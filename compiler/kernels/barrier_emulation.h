// What sm_90's barriers in shared memory and the copies that arrive at them do,
// in plain loops, after PTX's description of mbarrier and cp.async.bulk.tensor:
// for tests on machines without a GPU.
//
// A box spoils its place with NaNs as soon as it is asked for, and comes when
// it is told to: who reads it before, or still reads what was there, finds out.
// What products of a warpgroup have read, each of its warps knows of itself
// only: who asks for a box in its place must have waited for all of them.
//
// Copies of boxes see memory by another way than threads do (PTX's asynchronous
// proxy), so that what a thread has written there before is in order with them
// only behind a fence of its own. Where threads write is not known: every one
// of them must have fenced where a barrier was made, before all have met.
#ifndef PARTITA_COMPILER_KERNELS_BARRIER_EMULATION_H_
#define PARTITA_COMPILER_KERNELS_BARRIER_EMULATION_H_

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "compiler/kernels/warpgroup_emulation.h"

namespace partita::kernels {

// A tensor map (tensor_map.h) of four dimensions and 16-bit elements, where
// generated code expects one.
struct alignas(128) EmulatedMap {
  const char* first = nullptr;  // element
  int64_t shape[4] = {};
  int64_t strides[3] = {};  // bytes
  int32_t box[4] = {};
};

// Functions return what is wrong; empty if nothing is.
class BarrierEmulation {
 public:
  // Of a team of so many threads.
  explicit BarrierEmulation(int threads)
      : fenced_(static_cast<size_t>(threads), -1) {}

  std::string make(char* at, int thread, int arrivals);
  std::string end(const char* at, int thread);
  // An arrival; before that, so many more bytes are expected.
  std::string arrive(const char* at, int thread, int64_t bytes);
  // Whether a wait for a phase of this parity ends.
  std::string isOver(const char* at, int thread, int parity, bool& is_over);
  // Asks for a box.
  std::string copy(char* to, const char* barrier, int thread,
                   const EmulatedMap& map, const std::array<int64_t, 4>& at);

  // Barriers that this thread has made, and what it has written, are seen by
  // copies.
  void fence(int thread);
  // All threads have met: they see what others have done.
  void meet();
  // All warps have read this, each at its own time.
  void read(const SharedRange& range);
  // The box that was asked for last, of those that are to arrive here, comes;
  // false if there is none.
  bool completeLast(const char* at, std::string& wrong);

  bool isIdle() const { return pending_.empty(); }
  int64_t phases() const { return phases_; }  // that have ended
  std::string describe(const char* at) const;

 private:
  // How far each warp is known to be, by how often it has read.
  static constexpr size_t kWarps = 4;
  using Clock = std::array<int64_t, kWarps>;
  struct Read {
    SharedRange range;
    Clock at;
  };
  struct Barrier {
    int maker;
    int64_t made;  // after so many meetings of all
    bool fenced = false, seen = false;
    int arrivals;       // of a phase
    int missing;        // of this one
    int64_t bytes = 0;  // still expected
    int64_t phase = 0;
    Clock arrived = {}, passed = {};  // what those know who wait for it
  };
  struct Pending {
    char* to;
    const char* barrier;
    EmulatedMap map;
    std::array<int64_t, 4> at;
  };

  // What is at this address, for this thread; null with what is wrong.
  Barrier* find(const char* at, int thread, std::string& wrong);
  void finish(Barrier& barrier);
  Clock& clockOf(int thread) { return clocks_[thread / 32]; }

  std::map<const char*, Barrier> barriers_;
  std::vector<Pending> pending_;
  std::vector<Read> reads_;
  std::array<Clock, kWarps> clocks_ = {};
  int64_t meetings_ = 0;         // of all
  std::vector<int64_t> fenced_;  // by thread, after so many of them; -1: never
  int64_t phases_ = 0;
};

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_BARRIER_EMULATION_H_
