// Emulates wgmma in plain loops, so that tests need no GPU. Follows PTX's
// description of its descriptors and fragments.
//
// While products are in flight, each float of their sums is a NaN that
// identifies the sums. Code that computes with them before the wait gets NaNs.
// Products are computed when they are waited for; their operands in shared
// memory must not have changed since the product began.
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
// The address at which shared memory begins.
inline constexpr int64_t kSharedBegin = 1024;

// One thread's part of a product of 64 rows, in four steps of 16.
struct GroupProduct {
  bool bf16 = true;
  bool starts = false;  // the product starts new sums
  bool fenced = true;   // otherwise the sums must be in flight
  int columns = 64;
  bool in_registers = false;  // the left operand
  uint64_t left[4] = {};      // descriptors
  uint32_t words[4][4] = {};  // or fragments
  uint64_t right[4] = {};     // descriptors
  // Rows of the left operand, or columns of the right one, are contiguous in
  // shared memory; otherwise the products are. With `in_registers`, columns of
  // the right one always are.
  bool left_down = false, right_down = false;
  // `columns` / 2 floats, replaced by NaNs that identify the sums.
  float* sums = nullptr;
};

struct GroupWait {
  int pending = 0;
  int columns = 64;
  float* sums = nullptr;  // replaced by the sums if they have been waited for
};

// Bytes of shared memory.
struct SharedRange {
  const char* begin = nullptr;
  const char* end = nullptr;
};

// Products, of 64 rows by 64 columns of results each, that all warpgroups have
// begun since the program started. One of 128 columns counts twice.
int64_t multipliedGroups();

class WarpgroupEmulation {
 public:
  // Makes `memory` the byte of shared memory at address kSharedBegin.
  void setShared(const char* memory) { shared_ = memory; }
  const char* shared() const { return shared_; }

  // Take all threads of a warpgroup. Return an error message; empty on success.
  std::string begin(GroupProduct* const threads[kThreadsOfGroup]);
  void commit() { ++group_; }
  std::string wait(GroupWait* const threads[kThreadsOfGroup]);
  bool isIdle() const { return pending_.empty(); }
  // Memory read by the products that were waited for since the last call.
  std::vector<SharedRange> takeRead() { return std::exchange(read_, {}); }
  // Memory that the products read which have begun since the last call.
  std::vector<SharedRange> takeBegun() { return std::exchange(begun_, {}); }

 private:
  using Matrix = std::vector<float>;  // rows of columns
  struct Pending {
    GroupProduct product;  // of thread 0
    uint32_t sums;
    int group;
    std::array<Matrix, 4> left, right;  // as they were when the product began
  };
  struct Sums {
    Matrix values;
    int in_flight = 0;
  };

  std::string readMatrices(GroupProduct* const threads[kThreadsOfGroup],
                           Pending& pending);
  // Reads 16 columns of `count` rows, as [count][16], and the range they
  // occupy. For a right operand, reads 16 rows of `count` columns.
  std::string read(uint64_t descriptor, bool rows_together, int count,
                   bool bf16, Matrix& matrix,
                   SharedRange* range = nullptr) const;
  std::string finish(const Pending& pending);

  const char* shared_ = nullptr;
  int group_ = 0;  // commits so far
  uint32_t last_ = 0;
  std::vector<Pending> pending_;  // in the order of their start
  std::map<uint32_t, Sums> sums_;
  std::vector<SharedRange> read_, begun_;
};

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_WARPGROUP_EMULATION_H_
