// How a convolution on AMX (split_conv.h) is divided into tasks and tiles. On
// plain data.
//
// The input is copied into planes. A stride of s needs s planes per dimension
// (phases): plane p has the elements p, p + s, p + 2s, ... of the padded input,
// so that neighbours in a plane are read for neighbours in the output. Rows of
// a plane are `row_positions` apart, and so are rows of the output's
// positions: the position of row h and column w is h * row_positions + w, and
// each tap of the window reads its pixel at a constant distance from there.
// Positions whose w is beyond the output are computed and not written.
#ifndef PARTITA_RUNTIME_CPU_SPLIT_CONV_PLAN_H_
#define PARTITA_RUNTIME_CPU_SPLIT_CONV_PLAN_H_

#include <array>
#include <cstdint>
#include <vector>

namespace partita::cpu {

struct SplitConvShape {
  int64_t images = 1, height = 1, width = 1, channels = 1;
  int64_t out_height = 1, out_width = 1, outputs = 1;
  std::array<int64_t, 2> kernel = {1, 1}, strides = {1, 1}, dilations = {1, 1},
                         low = {0, 0};  // of rows, of columns; low >= 0
};

// The elements of the input in one phase of one dimension.
struct SplitPhase {
  int64_t first = 0;   // index of the first one in the plane
  int64_t source = 0;  // its index in the input
  int64_t count = 0;
};
SplitPhase PhaseOf(int64_t size, int64_t low, int64_t stride, int64_t phase);

struct SplitConvPlan {
  int64_t channel_blocks = 1;  // of kSplitDepth channels
  int64_t panels = 1;          // of kSplitLines outputs
  int64_t steps = 1;           // of the whole sum
  int64_t block_steps = 1;     // summed in a tile, then added to its total
  int64_t chunk_steps = 1;     // of a panel, which all tiles take together
  int64_t row_positions = 1;
  // Of rows and columns; those without a tap are left out.
  std::vector<std::array<int64_t, 2>> phases;
  // Taps of the window, row and column, in the order of a channel block's
  // steps: those of one phase follow one another, as they read the same pixels.
  std::vector<std::array<int64_t, 2>> taps;
  int64_t row_reach = 0;  // rows of a plane that are read below an output row

  // A task: some rows of one image, or some images, and some panels.
  int64_t task_rows = 1, task_images = 1, task_panels = 1;
  int64_t tasks = 1;
  int64_t plane_positions = 1;  // a last tile may read beyond the rows
  // Per step: the bytes from the first plane of a part to the pixel that is
  // read for position 0. The last element repeats the first: it is fetched
  // during the last step.
  std::vector<int64_t> offsets;
  int64_t part_bytes = 1, image_bytes = 1;  // of a task's planes
  double cycles = 0;                        // estimate

  // Partial sums of 32 x 32 in scratch: one per tile if a panel has several
  // chunks, else one.
  int64_t totals = 1;
  int64_t cached_bytes = 0;  // planes, totals and two chunks of the weight

  int64_t row_blocks(const SplitConvShape& shape) const;
  int64_t task_bytes() const { return task_images * image_bytes; }
};

// Chooses the tasks for `threads` threads. `block_steps` does not depend on
// their number, so that results do not.
SplitConvPlan PlanSplitConv(const SplitConvShape& shape, int threads);

// True if the convolution is estimated to take less than 0.9 of oneDNN's time
// on one thread of the processor of split_conv_plan.cc. On more threads the
// same is chosen, so that there must be some tasks. Rows are not divided: false
// if one exceeds the second-level cache.
bool IsFasterOnAmx(const SplitConvShape& shape);

}  // namespace partita::cpu

#endif  // PARTITA_RUNTIME_CPU_SPLIT_CONV_PLAN_H_
