// Checks the emulated barriers and boxes. A box must lie where PTX's
// description of tensor maps and of the 128-byte swizzle places it. A missing
// wait, a wait for too much, and a box over memory that is still read must be
// found.
#include "compiler/kernels/barrier_emulation.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <vector>

#include "compiler/kernels/team_fibers.h"

namespace partita::kernels {
namespace {

extern "C" {
int64_t partita_block_thread();
void partita_block_sync();
void partita_fence_tiles();
void partita_barrier_make(char* base, int64_t offset, int32_t arrivals);
void partita_barrier_end(char* base, int64_t offset);
void partita_barrier_arrive(char* base, int64_t offset);
void partita_barrier_expect(char* base, int64_t offset, int32_t bytes,
                            int32_t does);
void partita_barrier_wait(char* base, int64_t offset, int32_t parity);
void partita_copy_box(char* base, int64_t offset, int64_t barrier,
                      const void* map, int32_t, int32_t, int32_t, int32_t,
                      int32_t does);
}

constexpr int kRows = 16, kColumns = 64, kRowBytes = 128;
constexpr int kBoxBytes = kRows * kRowBytes;
constexpr int kTensorRows = 40, kTensorColumns = 96, kHeads = 3;

uint16_t elementAt(int head, int row, int column) {
  return static_cast<uint16_t>(1 + head * 10000 + row * 100 + column);
}

// A tensor [1, heads, rows, columns]. Rows of different heads lie side by side.
class Tensor {
 public:
  Tensor() : elements_(kTensorRows * kHeads * kTensorColumns) {
    for (int row = 0; row < kTensorRows; ++row)
      for (int head = 0; head < kHeads; ++head)
        for (int column = 0; column < kTensorColumns; ++column)
          elements_[(row * kHeads + head) * kTensorColumns + column] =
              elementAt(head, row, column);
    map_.first = reinterpret_cast<const char*>(elements_.data());
    const int64_t row = 2 * kTensorColumns * kHeads;
    const int64_t shape[] = {1, kHeads, kTensorRows, kTensorColumns},
                  strides[] = {row * kTensorRows, 2 * kTensorColumns, row};
    const int32_t box[] = {1, 1, kRows, kColumns};
    std::memcpy(map_.shape, shape, sizeof(shape));
    std::memcpy(map_.strides, strides, sizeof(strides));
    std::memcpy(map_.box, box, sizeof(box));
  }
  const EmulatedMap& map() const { return map_; }

 private:
  std::vector<uint16_t> elements_;
  EmulatedMap map_;
};

alignas(1024) char shared[4 * kBoxBytes];
constexpr int64_t kFull = 2 * kBoxBytes, kEmpty = kFull + 8;

// The element of the box at this byte.
uint16_t sharedAt(int begin, int row, int column) {
  const int part = (column / 8) ^ (row % 8);
  uint16_t element;
  std::memcpy(&element,
              shared + begin + kRowBytes * row + 16 * part + 2 * (column % 8),
              sizeof(element));
  return element;
}

TEST(BarrierEmulationTest, BoxesLieSwizzledAndEndInZeros) {
  const Tensor tensor;
  constexpr int kHead = 2, kRow = 32, kColumn = 64;  // 8 rows, 32 columns left
  std::vector<uint16_t> found;
  EXPECT_EQ(runTeam(1,
                    [&] {
                      partita_barrier_make(shared, kFull, 1);
                      partita_fence_tiles();
                      partita_barrier_expect(shared, kFull, 2 * kBoxBytes, 1);
                      partita_copy_box(shared, 0, kFull, &tensor.map(), 0,
                                       kHead, kRow, kColumn, 1);
                      partita_copy_box(shared, kBoxBytes, kFull, &tensor.map(),
                                       0, kHead, 0, 0, 1);
                      // The box is full of NaNs: nothing has arrived yet.
                      EXPECT_EQ(sharedAt(0, 0, 0), 0xffff);
                      partita_barrier_wait(shared, kFull, 0);
                    }),
            "");
  for (int row = 0; row < kRows; ++row)
    for (int column = 0; column < kColumns; ++column) {
      const bool inside =
          kRow + row < kTensorRows && kColumn + column < kTensorColumns;
      ASSERT_EQ(sharedAt(0, row, column),
                inside ? elementAt(kHead, kRow + row, kColumn + column) : 0)
          << row << " " << column;
      ASSERT_EQ(sharedAt(kBoxBytes, row, column), elementAt(kHead, row, column))
          << row << " " << column;
    }
}

// One warp requests boxes, two in turn; another reads them.
struct Ring {
  // Number of threads that fence; thread 0, which makes the barriers, is first.
  int fences = 64;
  bool met = true, waits_for_full = true, waits_for_empty = true,
       releases = true;
  int expected = kBoxBytes;
  int full_parity = 0, empty_parity = 1;  // of the first box
  int boxes = 5;
};

std::string run(const Ring& ring) {
  const Tensor tensor;
  bool is_right = true;
  const auto ask = [&](int box) {
    const int stage = box % 2, phase = box / 2;
    const int64_t barrier = 16 * stage;
    if (ring.waits_for_empty)
      partita_barrier_wait(shared, kEmpty + barrier,
                           (phase + ring.empty_parity) % 2);
    partita_barrier_expect(shared, kFull + barrier, ring.expected, 1);
    partita_copy_box(shared, kBoxBytes * stage, kFull + barrier, &tensor.map(),
                     0, 0, 4 * box, 0, 1);
  };
  const auto read = [&](int box) {
    const int stage = box % 2, phase = box / 2;
    if (ring.waits_for_full)
      partita_barrier_wait(shared, kFull + 16 * stage,
                           (phase + ring.full_parity) % 2);
    is_right &=
        sharedAt(kBoxBytes * stage, 3, 9) == elementAt(0, 4 * box + 3, 9);
    if (ring.releases) partita_barrier_arrive(shared, kEmpty + 16 * stage);
  };
  const std::string wrong = runTeam(64, [&] {
    const int64_t thread = partita_block_thread();
    for (int stage = 0; stage < 2 && thread == 0; ++stage) {
      partita_barrier_make(shared, kFull + 16 * stage, 1);
      partita_barrier_make(shared, kEmpty + 16 * stage, 1);
    }
    if (thread < ring.fences) partita_fence_tiles();
    if (ring.met) partita_block_sync();
    for (int box = 0; box < ring.boxes; ++box)
      if (thread == 0)
        ask(box);
      else if (thread == 32)
        read(box);
    partita_block_sync();
    for (int stage = 0; stage < 2 && thread == 0; ++stage) {
      partita_barrier_end(shared, kFull + 16 * stage);
      partita_barrier_end(shared, kEmpty + 16 * stage);
    }
  });
  return !wrong.empty() ? wrong : is_right ? "" : "wrong elements";
}

TEST(BarrierEmulationTest, ARingOfTwoBoxes) { EXPECT_EQ(run({}), ""); }

TEST(BarrierEmulationTest, WhoDoesNotWaitIsFound) {
  Ring ring;
  ring.waits_for_full = false;
  EXPECT_NE(run(ring), "");
  ring = {};
  ring.waits_for_empty = false;
  EXPECT_NE(run(ring), "");
  ring = {};
  ring.full_parity = 1;
  EXPECT_NE(run(ring), "");
  ring = {};
  ring.empty_parity = 0;
  EXPECT_EQ(run(ring),
            "thread 0 waits forever: phase 0, 1 of 1 arrivals and "
            "0 bytes missing");
}

TEST(BarrierEmulationTest, EndlessWaitsAreFound) {
  Ring ring;
  ring.boxes = 1;
  ring.expected = kBoxBytes + 16;
  EXPECT_EQ(run(ring),
            "thread 32 waits forever: phase 0, 0 of 1 arrivals "
            "and 16 bytes missing");
  ring.expected = kBoxBytes - 16;
  EXPECT_EQ(run(ring),
            "more bytes have come than were expected: phase 0, 0 of 1 arrivals "
            "and -16 bytes missing");
  ring = {};
  ring.releases = false;
  EXPECT_EQ(run(ring),
            "thread 0 waits forever: phase 0, 1 of 1 arrivals and "
            "0 bytes missing");
}

TEST(BarrierEmulationTest, BarriersAreSeenWhenAllHaveMet) {
  EXPECT_EQ(runTeam(64,
                    [] {
                      const int64_t thread = partita_block_thread();
                      if (thread == 0) partita_barrier_make(shared, kFull, 1);
                      partita_fence_tiles();
                      if (thread == 32) partita_barrier_arrive(shared, kFull);
                    }),
            "thread 32 uses a barrier that another thread has made, and they "
            "have not met");
  Ring ring;
  ring.met = false;
  EXPECT_EQ(run(ring),
            "a box over memory that thread 1 may have written without a fence");
  ring = {};
  ring.fences = 0;
  EXPECT_EQ(run(ring), "a box for a barrier that was made without a fence");
}

// Without its fence, a thread's earlier writes could come after the box.
TEST(BarrierEmulationTest, AllThreadsFence) {
  Ring ring;
  ring.fences = 1;
  EXPECT_EQ(run(ring),
            "a box over memory that thread 1 may have written without a fence");
  ring.fences = 63;
  EXPECT_EQ(
      run(ring),
      "a box over memory that thread 63 may have written without a fence");
}

// A fence before a meeting covers only the writes before that meeting.
TEST(BarrierEmulationTest, FencesCoverEarlierWrites) {
  const Tensor tensor;
  for (const bool again : {false, true}) {
    BarrierEmulation barriers(2);
    barriers.fence(0);
    barriers.fence(1);
    barriers.meet();
    ASSERT_EQ(barriers.make(shared + kFull, 0, 1), "");
    barriers.fence(0);
    if (again) barriers.fence(1);
    barriers.meet();
    EXPECT_EQ(barriers.copy(shared, shared + kFull, 0, tensor.map(), {}),
              again ? ""
                    : "a box over memory that thread 1 may have written "
                      "without a fence");
  }
}

TEST(BarrierEmulationTest, BarriersKeepTheirPlace) {
  EXPECT_EQ(runTeam(1,
                    [] {
                      partita_barrier_make(shared, kFull, 1);
                      partita_barrier_make(shared, kFull, 1);
                    }),
            "a barrier is made where there is one");
  EXPECT_EQ(runTeam(1,
                    [] {
                      partita_barrier_make(shared, kFull, 1);
                      shared[kFull + 3] = 0;
                      partita_barrier_arrive(shared, kFull);
                    }),
            "thread 0 uses a barrier that something else was written over");
  EXPECT_EQ(runTeam(1, [] { partita_barrier_wait(shared, kEmpty, 0); }),
            "thread 0 uses a barrier where there is none");
}

TEST(BarrierEmulationTest, BoxesAreWaitedFor) {
  const Tensor tensor;
  const auto ask = [&](bool ends) {
    return runTeam(1, [&, ends] {
      partita_barrier_make(shared, kFull, 1);
      partita_fence_tiles();
      partita_barrier_expect(shared, kFull, kBoxBytes, 1);
      partita_copy_box(shared, 0, kFull, &tensor.map(), 0, 0, 0, 0, 1);
      if (ends) partita_barrier_end(shared, kFull);
    });
  };
  EXPECT_EQ(ask(false), "the block has ended before its boxes have come");
  EXPECT_EQ(ask(true), "a barrier ends before its boxes have come");
}

// Two warps have read a place. First one of them says so, then the other.
TEST(BarrierEmulationTest, AllWarpsHaveReadWhatBoxesOverwrite) {
  const Tensor tensor;
  for (const bool both : {false, true}) {
    BarrierEmulation barriers(128);
    ASSERT_EQ(barriers.make(shared + kFull, 0, 1), "");
    ASSERT_EQ(barriers.make(shared + kEmpty, 0, both ? 4 : 3), "");
    for (int thread = 0; thread < 128; ++thread) barriers.fence(thread);
    barriers.meet();
    barriers.read({shared + 100, shared + 200});
    for (const int thread : {0, 32, 64, 96})
      if (both || thread != 64)
        ASSERT_EQ(barriers.arrive(shared + kEmpty, thread, 0), "");
    bool is_over = false;
    ASSERT_EQ(barriers.isOver(shared + kEmpty, 0, 0, is_over), "");
    EXPECT_TRUE(is_over);
    EXPECT_EQ(barriers.copy(shared, shared + kFull, 0, tensor.map(), {}),
              both ? "" : "a box over memory that warp 2 may still read");
    // Memory that nobody has read, or whose reads all threads know to be
    // finished.
    EXPECT_EQ(
        barriers.copy(shared + kBoxBytes, shared + kFull, 0, tensor.map(), {}),
        "");
    barriers.meet();
    EXPECT_EQ(barriers.copy(shared, shared + kFull, 0, tensor.map(), {}), "");
  }
}

}  // namespace
}  // namespace partita::kernels
