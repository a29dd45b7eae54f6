// What wgmma does, in plain loops, after PTX's description of its descriptors
// and fragments: for tests on machines without a GPU.
//
// Sums of products on their way are what no number is: each float a NaN that
// names them. Whoever computes with it before the wait gets NaNs. Products are
// computed where they are waited for, and what they are made of must be in
// shared memory as it was where they began.
#ifndef PARTITA_COMPILER_KERNELS_WARPGROUP_EMULATION_H_
#define PARTITA_COMPILER_KERNELS_WARPGROUP_EMULATION_H_

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace partita::kernels {

inline constexpr int kThreadsOfGroup = 128;
// Where shared memory begins, as addresses say it.
inline constexpr int64_t kSharedBegin = 1024;

// A product of 64 rows, as one thread asks for it: four steps of 16.
struct GroupProduct {
  bool bf16 = true;
  bool starts = false;  // there are no sums yet
  bool fenced = true;   // otherwise the sums must be on their way
  int columns = 64;
  bool in_registers = false;  // the left side
  uint64_t left[4] = {};      // descriptors, of columns that lie together
  uint32_t words[4][4] = {};  // or fragments
  uint64_t right[4] = {};  // of columns that lie together, with `in_registers`
                           // of rows
  float* sums = nullptr;   // columns / 2 of them; then what names the sums
};

struct GroupWait {
  int pending = 0;
  int columns = 64;
  float* sums = nullptr;  // and then the sums, if these have been waited for
};

// Bytes of shared memory.
struct SharedRange {
  const char* begin = nullptr;
  const char* end = nullptr;
};

class WarpgroupEmulation {
 public:
  // Byte `address` - kSharedBegin of this is at that address.
  void setShared(const char* memory) { shared_ = memory; }
  const char* shared() const { return shared_; }

  // All of a warpgroup's threads. What is wrong; empty if nothing is.
  std::string begin(GroupProduct* const threads[kThreadsOfGroup]);
  void commit() { ++group_; }
  std::string wait(GroupWait* const threads[kThreadsOfGroup]);
  bool isIdle() const { return pending_.empty(); }
  // What products have read that were waited for since the last time.
  std::vector<SharedRange> takeRead() { return std::exchange(read_, {}); }

 private:
  using Matrix = std::vector<float>;  // rows of columns
  struct Pending {
    GroupProduct product;  // of thread 0
    uint32_t sums;
    int group;
    std::array<Matrix, 4> left, right;  // as they were in the beginning
  };
  struct Sums {
    Matrix values;
    int on_their_way = 0;
  };

  std::string readMatrices(GroupProduct* const threads[kThreadsOfGroup],
                           Pending& pending) const;
  // 16 steps of `count` rows (or, of a right side, columns), [count][16], and
  // where they lie.
  std::string read(uint64_t descriptor, bool rows_together, int count,
                   bool bf16, Matrix& matrix,
                   SharedRange* range = nullptr) const;
  std::string finish(const Pending& pending);

  const char* shared_ = nullptr;
  int group_ = 0;  // commits so far
  uint32_t last_ = 0;
  std::vector<Pending> pending_;  // in their order
  std::map<uint32_t, Sums> sums_;
  std::vector<SharedRange> read_;
};

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_WARPGROUP_EMULATION_H_
