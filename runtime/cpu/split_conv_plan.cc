// The estimate has the costs that were measured on a Sapphire Rapids of 2.6 GHz
// for the 3 x 3 convolutions of ResNet-50 and some others. It errs by up to a
// fifth.
#include "runtime/cpu/split_conv_plan.h"

#include <algorithm>

#include "runtime/cpu/split_conv_kernels.h"

namespace partita::cpu {
namespace {

// Cycles of a tile's step, with one phase or several.
constexpr double kStepCycles = 420, kPhasesStepCycles = 470;
// The rest of a tile's work per chunk.
constexpr double kTileCycles = 1500;
// To split 32 channels of a pixel.
constexpr double kPixelCycles = 30;
// To read a step of the weight from memory.
constexpr double kWeightCycles = 1000;
// Planes, totals and two chunks of the weight stay in the second-level cache of
// 2 MB: the chunk that is read, and the next one, which is fetched.
constexpr int64_t kCacheBytes = 7 << 18, kMostChunkSteps = 36;
// Sums in tiles are at most this deep.
constexpr int64_t kMostBlockSteps = 12;

int64_t Blocks(int64_t size, int64_t block) {
  return (size + block - 1) / block;
}

// A tap in one dimension: its phase, and its distance from position 0.
struct Tap {
  int64_t phase, distance;
};
Tap TapOf(const SplitConvShape& shape, int dimension, int64_t index) {
  const int64_t place = index * shape.dilations[dimension];
  return {place % shape.strides[dimension], place / shape.strides[dimension]};
}

int64_t Reach(const SplitConvShape& shape, int dimension, int64_t phase) {
  int64_t reach = -1;
  for (int64_t i = 0; i < shape.kernel[dimension]; ++i) {
    const Tap tap = TapOf(shape, dimension, i);
    if (tap.phase == phase) reach = std::max(reach, tap.distance);
  }
  return reach;  // -1: no tap reads it
}

// The least distance of rows. A pixel behind the end of a row is one of the
// zeros before the next row.
int64_t RowPositions(const SplitConvShape& shape) {
  int64_t positions = shape.out_width;
  for (int64_t i = 0; i < shape.strides[1]; ++i) {
    const int64_t reach = Reach(shape, 1, i);
    if (reach < 0) continue;
    const SplitPhase phase =
        PhaseOf(shape.width, shape.low[1], shape.strides[1], i);
    const int64_t read = shape.out_width + reach,
                  end = phase.first + phase.count;
    positions = std::max(
        positions, read <= end ? read : std::max(end, read - phase.first));
  }
  return positions;
}

class Planner {
 public:
  Planner(const SplitConvShape& shape, int threads)
      : shape_(shape), threads_(threads) {}

  SplitConvPlan Plan() {
    Describe();
    best_ = plan_;
    for (int64_t rows = 1; rows <= shape_.out_height; ++rows) {
      const int64_t most_images = rows == shape_.out_height ? shape_.images : 1;
      for (int64_t images = 1; images <= most_images; ++images) {
        SetRows(rows, images);
        if ((rows > 1 || images > 1) && plan_.cached_bytes > kCacheBytes) break;
        ChoosePanels();
      }
    }
    SetOffsets(best_);
    return best_;
  }

 private:
  void Describe() {
    plan_.channel_blocks = Blocks(shape_.channels, kSplitDepth);
    plan_.panels = Blocks(shape_.outputs, kSplitLines);
    plan_.steps = plan_.channel_blocks * shape_.kernel[0] * shape_.kernel[1];
    plan_.block_steps =
        Blocks(plan_.steps, Blocks(plan_.steps, kMostBlockSteps));
    plan_.chunk_steps =
        std::min(plan_.steps,
                 plan_.block_steps *
                     std::max<int64_t>(1, kMostChunkSteps / plan_.block_steps));
    plan_.row_positions = RowPositions(shape_);
    for (int64_t row = 0; row < shape_.strides[0]; ++row)
      for (int64_t column = 0; column < shape_.strides[1]; ++column)
        if (Reach(shape_, 0, row) >= 0 && Reach(shape_, 1, column) >= 0)
          plan_.phases.push_back({row, column});
    for (const std::array<int64_t, 2>& phase : plan_.phases)
      for (int64_t i = 0; i < shape_.kernel[0]; ++i)
        for (int64_t j = 0; j < shape_.kernel[1]; ++j)
          if (TapOf(shape_, 0, i).phase == phase[0] &&
              TapOf(shape_, 1, j).phase == phase[1])
            plan_.taps.push_back({i, j});
    for (const auto& [row, column] : plan_.phases) {
      plan_.row_reach = std::max(plan_.row_reach, Reach(shape_, 0, row));
      column_reach_ = std::max(column_reach_, Reach(shape_, 1, column));
    }
  }

  int64_t TilesOf(int64_t rows) const {
    return Blocks((rows - 1) * plan_.row_positions + shape_.out_width,
                  kSplitLines);
  }

  void SetRows(int64_t rows, int64_t images) {
    plan_.task_rows = rows;
    plan_.task_images = images;
    plan_.plane_positions = TilesOf(rows) * kSplitLines +
                            plan_.row_reach * plan_.row_positions +
                            column_reach_;
    plan_.part_bytes = plan_.channel_blocks *
                       static_cast<int64_t>(plan_.phases.size()) *
                       plan_.plane_positions * kSplitPixelBytes;
    plan_.image_bytes = 3 * plan_.part_bytes;
    plan_.totals = plan_.chunk_steps < plan_.steps ? images * TilesOf(rows) : 1;
    plan_.cached_bytes = plan_.task_bytes() +
                         plan_.totals * kSplitLines * kSplitLines * 4 +
                         2 * plan_.chunk_steps * kSplitStepBytes;
  }

  void ChoosePanels() {
    for (int64_t parts = 1; parts <= std::min<int64_t>(plan_.panels, threads_);
         ++parts) {
      plan_.task_panels = Blocks(plan_.panels, parts);
      plan_.tasks = Blocks(shape_.images, plan_.task_images) *
                    plan_.row_blocks(shape_) *
                    Blocks(plan_.panels, plan_.task_panels);
      plan_.cycles = Estimate();
      if (best_.cycles == 0 || plan_.cycles < best_.cycles) best_ = plan_;
    }
  }

  double Estimate() const {
    const auto tiles =
        static_cast<double>(plan_.task_images * TilesOf(plan_.task_rows));
    const double pixels =
        static_cast<double>(plan_.task_bytes()) / (3.0 * kSplitPixelBytes);
    const double step =
        plan_.phases.size() > 1 ? kPhasesStepCycles : kStepCycles;
    const auto chunks =
        static_cast<double>(Blocks(plan_.steps, plan_.chunk_steps));
    const double task = static_cast<double>(plan_.task_panels) *
                            (static_cast<double>(plan_.steps) *
                                 std::max(tiles * step, kWeightCycles) +
                             tiles * chunks * kTileCycles) +
                        pixels * kPixelCycles;
    return task * static_cast<double>(Blocks(plan_.tasks, threads_));
  }

  void SetOffsets(SplitConvPlan& plan) const {
    const auto phases = static_cast<int64_t>(plan.phases.size());
    for (int64_t block = 0; block < plan.channel_blocks; ++block)
      for (const auto& [i, j] : plan.taps) {
        const Tap row = TapOf(shape_, 0, i), column = TapOf(shape_, 1, j);
        const std::array<int64_t, 2> phase = {row.phase, column.phase};
        const int64_t plane =
            block * phases +
            (std::find(plan.phases.begin(), plan.phases.end(), phase) -
             plan.phases.begin());
        plan.offsets.push_back((plane * plan.plane_positions +
                                row.distance * plan.row_positions +
                                column.distance) *
                               kSplitPixelBytes);
      }
    plan.offsets.push_back(plan.offsets.front());
  }

  const SplitConvShape shape_;
  const int threads_;
  int64_t column_reach_ = 0;
  SplitConvPlan plan_, best_;
};

}  // namespace

SplitPhase PhaseOf(int64_t size, int64_t low, int64_t stride, int64_t phase) {
  // Element `first` of the plane is first * stride + phase - low of the input.
  SplitPhase result;
  result.first = low > phase ? Blocks(low - phase, stride) : 0;
  result.source = result.first * stride + phase - low;
  result.count =
      result.source < size ? Blocks(size - result.source, stride) : 0;
  return result;
}

int64_t SplitConvPlan::row_blocks(const SplitConvShape& shape) const {
  return Blocks(shape.out_height, task_rows);
}

SplitConvPlan PlanSplitConv(const SplitConvShape& shape, int threads) {
  return Planner(shape, threads).Plan();
}

bool IsFasterOnAmx(const SplitConvShape& shape) {
  // oneDNN's f32 convolutions reach 160 to 200 GFLOP/s.
  constexpr double kOneDnnFlopsPerCycle = 70, kLeastGain = 0.9;
  // With fewer channels, more than half of each step multiplies zeros.
  constexpr int64_t kFewestChannels = 16;
  // Rows of the output times panels, which threads can share.
  constexpr int64_t kFewestParts = 8;
  if (shape.channels < kFewestChannels ||
      shape.images * shape.out_height * Blocks(shape.outputs, kSplitLines) <
          kFewestParts)
    return false;
  double flops = 2;
  for (const int64_t size :
       {shape.images, shape.out_height, shape.out_width, shape.outputs,
        shape.channels, shape.kernel[0], shape.kernel[1]})
    flops *= static_cast<double>(size);
  const SplitConvPlan plan = PlanSplitConv(shape, 1);
  return plan.cached_bytes <= kCacheBytes &&
         plan.cycles < kLeastGain * flops / kOneDnnFlopsPerCycle;
}

}  // namespace partita::cpu
