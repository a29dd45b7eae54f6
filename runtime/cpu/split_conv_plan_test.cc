// Follows the plan on plain data: what the window reads at each position, and
// which convolutions are chosen.
#include "runtime/cpu/split_conv_plan.h"

#include <algorithm>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/cpu/split_conv_kernels.h"

namespace partita::cpu {
namespace {

// A convolution whose output is as large as padding `high` allows.
SplitConvShape Square(int64_t images, int64_t size, int64_t channels,
                      int64_t outputs, int64_t kernel, int64_t stride = 1) {
  SplitConvShape shape;
  shape.images = images;
  shape.height = shape.width = size;
  shape.channels = channels;
  shape.outputs = outputs;
  shape.kernel = {kernel, kernel};
  shape.strides = {stride, stride};
  shape.low = {kernel / 2, kernel / 2};
  shape.out_height = shape.out_width =
      (size + kernel / 2 * 2 - kernel) / stride + 1;
  return shape;
}

// The first plane of a task's rows from `first_row`: the index of a pixel of
// the input, plus 1, or 0 for padding.
std::vector<int64_t> PlanesOf(const SplitConvShape& shape,
                              const SplitConvPlan& plan, int64_t first_row,
                              int64_t rows) {
  std::vector<int64_t> planes(
      plan.phases.size() * static_cast<size_t>(plan.plane_positions), 0);
  for (size_t i = 0; i < plan.phases.size(); ++i) {
    const SplitPhase columns =
        PhaseOf(shape.width, shape.low[1], shape.strides[1], plan.phases[i][1]);
    const int64_t count =
        std::min(columns.count, plan.row_positions - columns.first);
    for (int64_t row = 0; row < rows + plan.row_reach; ++row) {
      const int64_t y = (first_row + row) * shape.strides[0] +
                        plan.phases[i][0] - shape.low[0];
      if (y < 0 || y >= shape.height) continue;
      for (int64_t j = 0; j < count; ++j)
        planes.at(
            i * static_cast<size_t>(plan.plane_positions) +
            static_cast<size_t>(row * plan.row_positions + columns.first + j)) =
            y * shape.width + columns.source + j * shape.strides[1] + 1;
    }
  }
  return planes;
}

// Every tap at every output finds its pixel, or zero.
void CheckReads(const SplitConvShape& shape, const SplitConvPlan& plan) {
  ASSERT_EQ(plan.taps.size(),
            static_cast<size_t>(shape.kernel[0] * shape.kernel[1]));
  ASSERT_EQ(plan.offsets.size(), static_cast<size_t>(plan.steps + 1));
  for (int64_t first = 0; first < shape.out_height; first += plan.task_rows) {
    const int64_t rows = std::min(plan.task_rows, shape.out_height - first);
    const std::vector<int64_t> planes = PlanesOf(shape, plan, first, rows);
    for (size_t tap = 0; tap < plan.taps.size(); ++tap) {
      const int64_t offset = plan.offsets[tap] / kSplitPixelBytes;
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t column = 0; column < shape.out_width; ++column) {
          const int64_t y = (first + row) * shape.strides[0] +
                            plan.taps[tap][0] * shape.dilations[0] -
                            shape.low[0],
                        x = column * shape.strides[1] +
                            plan.taps[tap][1] * shape.dilations[1] -
                            shape.low[1];
          const bool inside =
              y >= 0 && y < shape.height && x >= 0 && x < shape.width;
          const size_t place =
              static_cast<size_t>(row * plan.row_positions + column + offset);
          ASSERT_LT(place, planes.size());
          ASSERT_EQ(planes[place], inside ? y * shape.width + x + 1 : 0)
              << "tap " << tap << ", row " << first + row << ", column "
              << column;
        }
    }
    // The last tile's positions are in memory, too.
    const int64_t positions = (rows - 1) * plan.row_positions + shape.out_width,
                  read = (positions + kSplitLines - 1) / kSplitLines *
                             kSplitLines * kSplitPixelBytes +
                         *std::max_element(plan.offsets.begin(),
                                           plan.offsets.end());
    ASSERT_LE(read, plan.part_bytes);
  }
}

TEST(SplitConvPlanTest, WindowsReadTheirPixels) {
  std::mt19937 random(7);
  const auto pick = [&](int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random);
  };
  for (int i = 0; i < 500; ++i) {
    SplitConvShape shape;
    shape.images = pick(1, 3);
    shape.height = pick(1, 20);
    shape.width = pick(1, 20);
    shape.channels = pick(1, 70);
    shape.outputs = pick(1, 70);
    shape.out_height = shape.out_width = 0;
    for (size_t k = 0; k < 2; ++k) {
      shape.kernel[k] = pick(1, 5);
      shape.strides[k] = pick(1, 4);
      shape.dilations[k] = pick(1, 3);
      shape.low[k] = pick(0, 6);
    }
    const auto out = [&](size_t k, int64_t size) {
      const int64_t room = shape.low[k] + size + pick(0, 6) -
                           shape.dilations[k] * (shape.kernel[k] - 1) - 1;
      return room < 0 ? 0 : room / shape.strides[k] + 1;
    };
    shape.out_height = out(0, shape.height);
    shape.out_width = out(1, shape.width);
    if (shape.out_height == 0 || shape.out_width == 0) continue;
    SCOPED_TRACE(i);
    CheckReads(shape, PlanSplitConv(shape, static_cast<int>(pick(1, 4))));
  }
}

// 14 pixels of a row and one that is padding for both sides.
TEST(SplitConvPlanTest, RowsShareTheirPadding) {
  EXPECT_EQ(PlanSplitConv(Square(1, 14, 64, 64, 3), 1).row_positions, 15);
  EXPECT_EQ(PlanSplitConv(Square(1, 14, 64, 64, 5), 1).row_positions, 16);
  EXPECT_EQ(PlanSplitConv(Square(1, 14, 64, 64, 1), 1).row_positions, 14);
}

// A pointwise convolution of stride 2 reads a quarter of the pixels.
TEST(SplitConvPlanTest, PhasesThatNobodyReadsAreLeftOut) {
  EXPECT_EQ(PlanSplitConv(Square(1, 14, 64, 64, 3, 2), 1).phases.size(), 4u);
  EXPECT_EQ(PlanSplitConv(Square(1, 14, 64, 64, 1, 2), 1).phases.size(), 1u);
}

TEST(SplitConvPlanTest, ThreadsDivideTheWork) {
  for (const SplitConvShape& shape :
       {Square(1, 56, 64, 64, 3), Square(1, 7, 512, 512, 3),
        Square(8, 14, 256, 256, 3)}) {
    const SplitConvPlan one = PlanSplitConv(shape, 1),
                        four = PlanSplitConv(shape, 4);
    EXPECT_GE(four.tasks, 4);
    EXPECT_LT(four.cycles, one.cycles / 3);
    EXPECT_EQ(four.block_steps, one.block_steps);
  }
}

// Ratios of AMX's time to oneDNN's with one thread are in tests/bench/wild.
TEST(SplitConvPlanTest, ChoosesWhatIsFaster) {
  for (const int64_t images : {1, 8}) {
    SCOPED_TRACE(images);
    EXPECT_TRUE(IsFasterOnAmx(Square(images, 56, 64, 64, 3)));
    EXPECT_TRUE(IsFasterOnAmx(Square(images, 28, 128, 128, 3)));
    EXPECT_TRUE(IsFasterOnAmx(Square(images, 14, 256, 256, 3)));
    EXPECT_TRUE(IsFasterOnAmx(Square(images, 7, 512, 512, 3)));
    EXPECT_TRUE(IsFasterOnAmx(Square(images, 56, 128, 128, 3, 2)));
    EXPECT_TRUE(IsFasterOnAmx(Square(images, 14, 1024, 2048, 1, 2)));
    EXPECT_TRUE(IsFasterOnAmx(Square(images, 7, 512, 2048, 1)));
    EXPECT_FALSE(IsFasterOnAmx(Square(images, 224, 3, 64, 7, 2)));
    EXPECT_FALSE(IsFasterOnAmx(Square(images, 56, 48, 48, 3)));
    EXPECT_FALSE(IsFasterOnAmx(Square(images, 56, 256, 64, 1)));
    EXPECT_FALSE(IsFasterOnAmx(Square(images, 56, 64, 64, 1)));
  }
}

// Rows are not divided.
TEST(SplitConvPlanTest, FewAndLongRowsAreLeftOut) {
  SplitConvShape shape = Square(1, 14, 256, 256, 3);
  shape.width = shape.out_width = 1024;
  EXPECT_FALSE(IsFasterOnAmx(shape));
  shape = Square(1, 1, 64, 64, 1);
  shape.kernel[1] = 9;
  shape.low[1] = 4;
  shape.width = shape.out_width = 1000;
  EXPECT_FALSE(IsFasterOnAmx(shape));
  shape.images = 8;
  EXPECT_TRUE(IsFasterOnAmx(shape));
}

}  // namespace
}  // namespace partita::cpu
