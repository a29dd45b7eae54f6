// Compares the emulated warpgroup with products of matrices. Each element must
// lie where PTX's description of wgmma.m64nNk16, of its descriptors and of the
// 128-byte swizzle places it.
#include "compiler/kernels/warpgroup_emulation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "compiler/kernels/team_fibers.h"

namespace partita::kernels {
namespace {

struct SumsOfThread {
  float __attribute__((vector_size(16))) eights[8];
};

extern "C" {
int64_t partita_block_thread();
void partita_block_sync();
void partita_copy(char* base, int64_t offset, int64_t source);
void partita_wait_for_copies();
int64_t partita_shared_address(const char* memory);
void partita_fence_tiles();
SumsOfThread partita_group_start_bf16(int64_t, int64_t, int64_t, int64_t,
                                      int64_t, int64_t, int64_t, int64_t);
}

// Small integers, which every type holds exactly and no sum rounds.
float LeftAt(int row, int k) {
  return static_cast<float>((row * 5 + k * 3) % 11 - 5);
}
float RightAt(int k, int column) {
  return static_cast<float>((k * 7 + column * 2) % 13 - 6);
}

uint16_t Bits(float value, bool bf16) {
  uint32_t wide;
  std::memcpy(&wide, &value, sizeof(wide));
  if (bf16) return static_cast<uint16_t>(wide >> 16);
  const _Float16 half = static_cast<_Float16>(value);
  uint16_t bits;
  std::memcpy(&bits, &half, sizeof(bits));
  return bits;
}

constexpr int kRightBegin = 8192;  // behind 64 rows of 128 bytes

uint64_t Descriptor(int64_t byte, int64_t leading, int64_t stride) {
  return static_cast<uint64_t>((kSharedBegin + byte) >> 4) |
         static_cast<uint64_t>(leading >> 4) << 16 |
         static_cast<uint64_t>(stride >> 4) << 32 | uint64_t{1} << 62;
}

// The threads that multiply 64 rows, 64 deep, of LeftAt and RightAt.
class Group {
 public:
  Group(bool bf16, int columns, bool in_registers)
      : bf16_(bf16), columns_(columns), floats_(128 * columns / 2) {
    warpgroup_.setShared(memory_);
    for (int i = 0; i < 64; ++i)
      for (int k = 0; k < 64; ++k) Put(0, i, k, LeftAt(i, k));
    for (int k = 0; k < 64; ++k)
      for (int j = 0; j < columns; ++j)
        if (in_registers)  // 64 columns behind 64 columns, rows of k
          Put(kRightBegin + j / 64 * 8192, k, j % 64, RightAt(k, j));
        else
          Put(kRightBegin, j, k, RightAt(k, j));
    for (int thread = 0; thread < 128; ++thread) {
      GroupProduct& product = products_[thread];
      product.bf16 = bf16;
      product.columns = columns;
      product.in_registers = in_registers;
      product.starts = !in_registers;
      product.sums = &floats_[thread * columns / 2];
      for (int i = 0; i < columns / 2; ++i)
        product.sums[i] = static_cast<float>(thread);
      for (int step = 0; step < 4; ++step) {
        product.left[step] = Descriptor(32 * step, 0, 1024);
        product.right[step] =
            in_registers ? Descriptor(kRightBegin + 2048 * step, 8192, 1024)
                         : Descriptor(kRightBegin + 32 * step, 0, 1024);
        const int row = 16 * (thread / 32) + thread % 32 / 4,
                  column = 16 * step + thread % 4 * 2;
        for (int i = 0; i < 8; ++i) {
          const bool below = i / 2 % 2 == 1;
          const uint32_t bits = Bits(
              LeftAt(row + (below ? 8 : 0), column + i % 2 + (i < 4 ? 0 : 8)),
              bf16);
          product.words[step][i / 2] |= bits << (16 * (i % 2));
        }
      }
      all_[thread] = &product;
    }
  }

  // Stores an element into a swizzled row of 128 bytes; rows begin at `begin`.
  void Put(int begin, int row, int column, float value) {
    const uint16_t bits = Bits(value, bf16_);
    const int part = (column / 8) ^ (row % 8);
    std::memcpy(memory_ + begin + 128 * row + 16 * part + 2 * (column % 8),
                &bits, 2);
  }

  std::string Begin() { return warpgroup_.begin(all_); }
  std::string Wait(int pending) {
    std::vector<GroupWait> waits(128);
    GroupWait* all[128];
    for (int i = 0; i < 128; ++i) {
      waits[i] = {pending, columns_, products_[i].sums};
      all[i] = &waits[i];
    }
    return warpgroup_.wait(all);
  }

  void ExpectSums() {
    for (int thread = 0; thread < 128; ++thread)
      for (int i = 0; i < columns_ / 2; ++i) {
        const int row = 16 * (thread / 32) + thread % 32 / 4 +
                        (i % 4 < 2 ? 0 : 8),
                  column = 8 * (i / 4) + thread % 4 * 2 + i % 2;
        float expected =
            products_[thread].starts ? 0 : static_cast<float>(thread);
        for (int k = 0; k < 64; ++k)
          expected += LeftAt(row, k) * RightAt(k, column);
        ASSERT_EQ(products_[thread].sums[i], expected) << thread << " " << i;
      }
  }

  WarpgroupEmulation& warpgroup() { return warpgroup_; }
  GroupProduct& product(int thread) { return products_[thread]; }

 private:
  bool bf16_;
  int columns_;
  char memory_[kRightBegin + 2 * 8192] = {};
  std::vector<float> floats_;
  GroupProduct products_[128];
  GroupProduct* all_[128];
  WarpgroupEmulation warpgroup_;
};

TEST(WarpgroupEmulationTest, MultipliesWhereDescriptorsPoint) {
  for (const bool bf16 : {true, false}) {
    Group group(bf16, 64, /*in_registers=*/false);
    ASSERT_EQ(group.Begin(), "");
    group.warpgroup().commit();
    ASSERT_EQ(group.Wait(0), "");
    group.ExpectSums();
  }
}

TEST(WarpgroupEmulationTest, AddsFragmentsTimesRows) {
  for (const int columns : {64, 128}) {
    Group group(/*bf16=*/true, columns, /*in_registers=*/true);
    ASSERT_EQ(group.Begin(), "");
    group.warpgroup().commit();
    ASSERT_EQ(group.Wait(0), "");
    group.ExpectSums();
  }
}

// Sums in flight are NaNs until their own group has been waited for.
TEST(WarpgroupEmulationTest, SumsAreThereAfterTheWait) {
  Group group(true, 64, false);
  ASSERT_EQ(group.Begin(), "");
  EXPECT_TRUE(std::isnan(group.product(77).sums[5]));
  ASSERT_EQ(group.Wait(0), "");  // no group yet
  EXPECT_TRUE(std::isnan(group.product(77).sums[5]));
  group.warpgroup().commit();
  ASSERT_EQ(group.Wait(1), "");
  EXPECT_TRUE(std::isnan(group.product(77).sums[5]));
  EXPECT_FALSE(group.warpgroup().isIdle());
  group.warpgroup().commit();
  ASSERT_EQ(group.Wait(1), "");
  group.ExpectSums();
  EXPECT_TRUE(group.warpgroup().isIdle());
}

TEST(WarpgroupEmulationTest, MatricesMustStay) {
  Group group(true, 64, false);
  ASSERT_EQ(group.Begin(), "");
  group.warpgroup().commit();
  group.Put(0, 13, 50, 100);
  EXPECT_EQ(group.Wait(0),
            "shared memory has changed while a product was in flight");
}

TEST(WarpgroupEmulationTest, SumsNeedAFenceUnlessTheyAreInFlight) {
  Group group(true, 64, false);
  for (int i = 0; i < 128; ++i) {
    group.product(i).starts = false;
    group.product(i).fenced = false;
  }
  EXPECT_EQ(group.Begin(),
            "expected sums in flight, found others, which need a fence");
}

TEST(WarpgroupEmulationTest, OtherDescriptorsAreRefused) {
  Group group(true, 64, false);
  group.product(9).right[2] += 2;
  EXPECT_EQ(group.Begin(), "thread 9 multiplies other matrices than thread 0");
  for (int i = 0; i < 128; ++i) group.product(i).right[2] = 0x4000400040;
  EXPECT_EQ(group.Begin(),
            "expected a descriptor of a 128-byte swizzle without base offset, "
            "found 0x4000400040");
}

// Threads copy 16 bytes each and multiply them. Returns the error message.
std::string runCopies(bool fence) {
  alignas(1024) static char from[2048], to[2048];
  return runTeam(128, [&] {
    const int64_t byte = 16 * partita_block_thread();
    const int64_t address = partita_shared_address(to);
    partita_copy(to, byte, reinterpret_cast<int64_t>(from + byte));
    partita_wait_for_copies();
    if (fence) partita_fence_tiles();
    partita_block_sync();
    if (!fence) partita_fence_tiles();  // too late
    // All 64 rows are the first eight rows.
    const int64_t all = address / 16 | int64_t{1} << 62;
    partita_group_start_bf16(all, all, all, all, all, all, all, all);
  });
}

TEST(WarpgroupEmulationTest, CopiesNeedAFenceBeforeThreadsMeet) {
  EXPECT_EQ(runCopies(/*fence=*/false),
            "a product of memory that thread 0 has written, and threads have "
            "not met since");
}

TEST(WarpgroupEmulationTest, ProductsAreWaitedFor) {
  EXPECT_EQ(runCopies(/*fence=*/true),
            "the block has ended before its products have");
}

}  // namespace
}  // namespace partita::kernels
