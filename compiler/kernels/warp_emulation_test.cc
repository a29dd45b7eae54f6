// Compares the emulated tensor cores with products of matrices. Each element of
// a fragment must lie where PTX's description of mma.m16n8k16 and ldmatrix
// places it.
#include "compiler/kernels/warp_emulation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "compiler/kernels/team_fibers.h"

namespace partita::kernels {
namespace {

using testing::HasSubstr;

extern "C" {
int64_t partita_team_thread();
int32_t partita_team_exchange(int32_t value, int32_t distance);
void partita_block_sync();
void partita_copy(char* base, int64_t offset, int64_t source);
void partita_wait_for_copies();
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

// Small integers, which every type holds exactly and no sum rounds.
float LeftAt(int row, int column) {
  return static_cast<float>((row * 5 + column * 3) % 11 - 5);
}
float RightAt(int row, int column) {
  return static_cast<float>((row * 7 + column * 2) % 13 - 6);
}

class Products : public testing::TestWithParam<bool> {};

// Fills elements a0 ... a7, b0 ... b3 and c0 ... c3 of a thread one by one.
TEST_P(Products, EqualMatrixProducts) {
  const bool bf16 = GetParam();
  std::vector<ProductOfLane> products(kLanesOfWarp);
  ProductOfLane* lanes[kLanesOfWarp];
  for (int lane = 0; lane < kLanesOfWarp; ++lane) {
    lanes[lane] = &products[lane];
    const int group = lane >> 2, in_group = lane % 4;
    uint16_t a[8], b[4];
    for (int i = 0; i < 8; ++i) {
      const int row = (i < 2 || (i >= 4 && i < 6)) ? group : group + 8;
      const int column = in_group * 2 + (i & 1) + (i >= 4 ? 8 : 0);
      a[i] = Bits(LeftAt(row, column), bf16);
    }
    for (int i = 0; i < 4; ++i) {
      const int row = in_group * 2 + (i & 1) + (i >= 2 ? 8 : 0);
      b[i] = Bits(RightAt(row, group), bf16);
    }
    std::memcpy(products[lane].left, a, sizeof(a));
    std::memcpy(products[lane].right, b, sizeof(b));
    for (float& sum : products[lane].sums) sum = static_cast<float>(lane);
  }
  multiplyFragments(bf16, lanes);
  for (int lane = 0; lane < kLanesOfWarp; ++lane)
    for (int i = 0; i < 4; ++i) {
      const int row = (lane >> 2) + (i < 2 ? 0 : 8),
                column = (lane % 4) * 2 + (i & 1);
      float expected = static_cast<float>(lane);
      for (int k = 0; k < 16; ++k)
        expected += LeftAt(row, k) * RightAt(k, column);
      EXPECT_EQ(products[lane].sums[i], expected) << lane << " " << i;
    }
}
INSTANTIATE_TEST_SUITE_P(WarpEmulation, Products, testing::Bool(),
                         [](const auto& info) {
                           return info.param ? "Bf16" : "F16";
                         });

// mma.m16n8k8 of tf32: elements a0 ... a3, b0 and b1. Three products equal a
// product of floats except for its last bits; one would be wrong by 2^-11.
TEST(WarpEmulationTest, ProductsOfFloatsAreGoodTo21Bits) {
  std::vector<FloatProductOfLane> products(kLanesOfWarp);
  FloatProductOfLane* lanes[kLanesOfWarp];
  const auto left = [](int row, int column) {
    return 1.0f + static_cast<float>(row * 8 + column) / 1777;
  };
  const auto right = [](int row, int column) {
    return 1.0f - static_cast<float>(row * 8 + column) / 1913;
  };
  for (int lane = 0; lane < kLanesOfWarp; ++lane) {
    lanes[lane] = &products[lane];
    const int group = lane >> 2, in_group = lane % 4;
    for (int i = 0; i < 4; ++i)
      products[lane].left[i] = left(i == 0 || i == 2 ? group : group + 8,
                                    i < 2 ? in_group : in_group + 4);
    for (int i = 0; i < 2; ++i)
      products[lane].right[i] = right(in_group + (i == 0 ? 0 : 4), group);
    for (float& sum : products[lane].sums) sum = 0;
  }
  multiplyFloatFragments(false, lanes);
  for (int lane = 0; lane < kLanesOfWarp; ++lane)
    for (int i = 0; i < 4; ++i) {
      const int row = (lane >> 2) + (i < 2 ? 0 : 8),
                column = (lane % 4) * 2 + (i & 1);
      double expected = 0;
      for (int k = 0; k < 8; ++k)
        expected += static_cast<double>(left(row, k)) * right(k, column);
      EXPECT_NEAR(products[lane].sums[i], expected, expected / (1 << 21))
          << lane << " " << i;
    }
}

// Lanes 8 i ... 8 i + 7 point to the rows of matrix i. A thread gets two
// elements of row lane / 4, or of column lane / 4.
TEST(WarpEmulationTest, LoadsMatrices) {
  uint16_t memory[32][8];
  for (int row = 0; row < 32; ++row)
    for (int column = 0; column < 8; ++column)
      memory[row][column] = static_cast<uint16_t>(100 * row + column);
  for (bool transposed : {false, true}) {
    std::vector<LoadOfLane> loads(kLanesOfWarp);
    LoadOfLane* lanes[kLanesOfWarp];
    for (int lane = 0; lane < kLanesOfWarp; ++lane) {
      // Rows in reverse order.
      loads[lane].row = reinterpret_cast<const char*>(memory[31 - lane]);
      lanes[lane] = &loads[lane];
    }
    loadMatrices(transposed, lanes);
    for (int lane = 0; lane < kLanesOfWarp; ++lane)
      for (int matrix = 0; matrix < 4; ++matrix)
        for (int i = 0; i < 2; ++i) {
          const int across = lane / 4, along = lane % 4 * 2 + i;
          const int row = transposed ? along : across,
                    column = transposed ? across : along;
          EXPECT_EQ(loads[lane].words[matrix] >> (16 * i) & 0xffff,
                    100u * (31 - (8 * matrix + row)) + column)
              << lane << " " << matrix << " " << i;
        }
  }
}

TEST(WarpEmulationTest, WarpsExchangeAndBlocksMeet) {
  std::vector<int> order;
  EXPECT_EQ(runTeam(64,
                    [&] {
                      const auto lane =
                          static_cast<int32_t>(partita_team_thread());
                      const int32_t other = partita_team_exchange(lane, 3);
                      EXPECT_EQ(other, lane ^ 3);
                      order.push_back(1);
                      partita_block_sync();
                      order.push_back(2);
                    }),
            "");
  ASSERT_EQ(order.size(), 128u);
  for (size_t i = 0; i < order.size(); ++i)
    EXPECT_EQ(order[i], i < 64 ? 1 : 2) << i;
}

TEST(WarpEmulationTest, CopiesHappenWhereTheyAreWaitedFor) {
  alignas(16) char from[16] = "a tile's row...", to[16] = "";
  EXPECT_EQ(runTeam(1,
                    [&] {
                      partita_copy(to, 0, reinterpret_cast<int64_t>(from));
                      EXPECT_STREQ(to, "");
                      partita_wait_for_copies();
                      EXPECT_STREQ(to, from);
                    }),
            "");
  EXPECT_EQ(
      runTeam(1, [&] { partita_copy(to, 0, reinterpret_cast<int64_t>(from)); }),
      "thread 0 has ended before its copies have");
}

TEST(WarpEmulationTest, ThreadsThatDoNotMeetAreNamed) {
  EXPECT_THAT(runTeam(64,
                      [&] {
                        if (partita_team_thread() == 5) partita_block_sync();
                      }),
              HasSubstr("thread 0 has ended where thread 5 synchronises"));
}

}  // namespace
}  // namespace partita::kernels
