// A task splits the pixels that it reads into the planes of split_conv_plan.h,
// which stay in the second-level cache, and multiplies all its tiles by panel
// after panel of the weight, which was split when it was packed. Tasks share
// nothing: rows that two tasks read are split twice.
#include "runtime/cpu/split_conv.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/cpu/split_conv_kernels.h"
#include "runtime/cpu/split_conv_plan.h"
#include "runtime/cpu/threads.h"

namespace partita::cpu {
namespace {

constexpr int64_t kTileSums = kSplitLines * kSplitLines;

bool IsPointwise(const SplitConvShape& shape) {
  const std::array<int64_t, 2> ones = {1, 1};
  return shape.kernel == ones && shape.strides == ones &&
         shape.out_height == shape.height && shape.out_width == shape.width &&
         shape.low == std::array<int64_t, 2>{0, 0};
}

SplitConvShape ShapeOf(const device::ConvDesc& desc) {
  SplitConvShape shape;
  shape.images = desc.input_shape[0];
  shape.height = desc.input_shape[1];
  shape.width = desc.input_shape[2];
  shape.channels = desc.input_shape[3];
  shape.out_height = desc.out_shape[1];
  shape.out_width = desc.out_shape[2];
  shape.outputs = desc.out_shape[3];
  for (size_t i = 0; i < 2; ++i) {
    shape.kernel[i] = desc.weight_shape[2 + i];
    shape.strides[i] = desc.strides[i];
    shape.dilations[i] = desc.dilations[i];
    shape.low[i] = desc.low[i];
  }
  if (IsPointwise(shape)) {
    // All pixels of the batch are rows of one image.
    shape.height = shape.out_height = shape.images * shape.height;
    shape.images = 1;
  }
  return shape;
}

class SplitConv : public CpuOp {
 public:
  SplitConv(const device::ConvDesc& desc, SplitConvPlan plan,
            std::shared_ptr<PackedWeight> weight, int threads)
      : desc_(desc),
        shape_(ShapeOf(desc)),
        plan_(std::move(plan)),
        activate_(VectorActivationOf(desc.activation)),
        weight_(std::move(weight)) {
    set_threads(threads);
    for (int64_t i = 0; i < plan_.task_rows * plan_.row_positions; ++i) {
      const int64_t row = i / plan_.row_positions,
                    column = i % plan_.row_positions;
      places_.push_back(
          column < shape_.out_width
              ? static_cast<int32_t>(row * shape_.out_width + column)
              : -1);
    }
  }

  int64_t scratch_bytes() const override { return threads() * ThreadBytes(); }
  bool Packed(int index) const override { return index == 1; }
  std::string Description() const override { return "split_window:amx_bf16"; }

  absl::Status Run(void* const* buffers, char* scratch) override {
    buffers_ = buffers;
    scratch_ = scratch;
    next_task_.store(0, std::memory_order_relaxed);
    RunOnThreads(threads(), &RunTasks, this);
    return absl::OkStatus();
  }

 private:
  // Rows of some images, and panels of the weight.
  struct Task {
    int64_t image, images, row, rows, panel, panels;
    int64_t positions;  // of an image
  };

  int64_t ThreadBytes() const {
    return AlignUp(plan_.task_bytes() + (2 + plan_.totals) * kTileSums * 4);
  }

  static void RunTasks(void* data, int thread, int threads) {
    SplitConv& op = *static_cast<SplitConv*>(data);
    ConfigureTiles();
    while (true) {
      const int64_t task =
          op.next_task_.fetch_add(1, std::memory_order_relaxed);
      if (task >= op.plan_.tasks) break;
      op.RunTask(op.TaskAt(task), op.scratch_ + thread * op.ThreadBytes());
    }
    ReleaseTiles();
  }

  const float* Operand(int index) const {
    return static_cast<const float*>(buffers_[index]);
  }

  Task TaskAt(int64_t index) const {
    const int64_t panel_blocks =
        (plan_.panels + plan_.task_panels - 1) / plan_.task_panels;
    Task task;
    task.panel = index % panel_blocks * plan_.task_panels;
    task.panels = std::min(plan_.task_panels, plan_.panels - task.panel);
    index /= panel_blocks;
    const int64_t row_blocks = plan_.row_blocks(shape_);
    task.row = index % row_blocks * plan_.task_rows;
    task.rows = std::min(plan_.task_rows, shape_.out_height - task.row);
    task.image = index / row_blocks * plan_.task_images;
    task.images = std::min(plan_.task_images, shape_.images - task.image);
    task.positions = (task.rows - 1) * plan_.row_positions + shape_.out_width;
    return task;
  }

  // Splits the pixels of an image. What lies outside of it is zero.
  void SplitImage(const Task& task, int64_t image, char* planes) const {
    std::memset(planes, 0, static_cast<size_t>(plan_.image_bytes));
    const float* const input =
        Operand(0) + image * shape_.height * shape_.width * shape_.channels;
    const auto phases = static_cast<int64_t>(plan_.phases.size());
    for (int64_t i = 0; i < phases; ++i) {
      const auto& [row_phase, column_phase] =
          plan_.phases[static_cast<size_t>(i)];
      const SplitPhase columns =
          PhaseOf(shape_.width, shape_.low[1], shape_.strides[1], column_phase);
      const int64_t count =
          std::min(columns.count, plan_.row_positions - columns.first);
      for (int64_t row = 0; row < task.rows + plan_.row_reach; ++row) {
        const int64_t y =
            (task.row + row) * shape_.strides[0] + row_phase - shape_.low[0];
        if (y < 0 || y >= shape_.height) continue;
        const float* const pixels =
            input + (y * shape_.width + columns.source) * shape_.channels;
        char* const target =
            planes + (i * plan_.plane_positions + row * plan_.row_positions +
                      columns.first) *
                         kSplitPixelBytes;
        for (int64_t block = 0; block < plan_.channel_blocks; ++block)
          SplitPixels(pixels + block * kSplitDepth,
                      shape_.strides[1] * shape_.channels, count,
                      shape_.channels - block * kSplitDepth,
                      target + block * phases * plan_.plane_positions *
                                   kSplitPixelBytes,
                      plan_.part_bytes);
      }
    }
  }

  const char* Panel(int64_t panel) const {
    return static_cast<const char*>(weight_->data) +
           panel * plan_.steps * kSplitStepBytes;
  }

  void RunTask(const Task& task, char* scratch) const {
    for (int64_t i = 0; i < task.images; ++i)
      SplitImage(task, task.image + i, scratch + i * plan_.image_bytes);
    float* sums = reinterpret_cast<float*>(scratch + plan_.task_bytes());
    float* other_sums = sums + kTileSums;
    float* const totals = other_sums + kTileSums;
    const int64_t tiles = TilesOf(task);
    SplitWindowTile finished;
    for (int64_t chunk = 0; chunk < task.panels * Chunks(); ++chunk) {
      const int64_t panel = task.panel + chunk / Chunks(),
                    begin = chunk % Chunks() * plan_.chunk_steps,
                    end = std::min(begin + plan_.chunk_steps, plan_.steps);
      for (int64_t i = 0; i < task.images * tiles; ++i) {
        const int64_t image = i / tiles, position = i % tiles * kSplitLines;
        SplitWindowTile tile =
            TileAt(task, task.image + image, position, panel);
        tile.total = totals + (plan_.totals > 1 ? i : 0) * kTileSums;
        SplitWindow window;
        window.pixels =
            scratch + image * plan_.image_bytes + position * kSplitPixelBytes;
        window.part_stride = plan_.part_bytes;
        for (int64_t step = begin; step < end; step += plan_.block_steps) {
          tile.first = step == 0;
          tile.last = step + plan_.block_steps >= plan_.steps;
          window.offsets = plan_.offsets.data() + step;
          window.weight = Panel(panel) + step * kSplitStepBytes;
          window.steps = std::min(plan_.block_steps, end - step);
          MultiplySplitWindow(
              window, finished,
              FetchAt(task, chunk, i * (end - begin) + step - begin,
                      window.steps),
              sums);
          tile.sums = sums;
          finished = tile;
          std::swap(sums, other_sums);
        }
      }
    }
    FinishSplitWindow(finished);
  }

  int64_t Chunks() const {
    return (plan_.steps + plan_.chunk_steps - 1) / plan_.chunk_steps;
  }
  static int64_t TilesOf(const Task& task) {
    return (task.positions + kSplitLines - 1) / kSplitLines;
  }

  // The part of the next chunk that is fetched during `steps` steps of all
  // tiles' of this one, of which the first is `step`.
  SplitFetch FetchAt(const Task& task, int64_t chunk, int64_t step,
                     int64_t steps) const {
    if (chunk + 1 >= task.panels * Chunks()) return {};
    const auto steps_of = [&](int64_t of) {
      return std::min(plan_.chunk_steps,
                      plan_.steps - of % Chunks() * plan_.chunk_steps);
    };
    const int64_t next = chunk + 1,
                  all = task.images * TilesOf(task) * steps_of(chunk),
                  bytes = steps_of(next) * kSplitStepBytes;
    const int64_t begin = bytes * step / all / 64 * 64,
                  end = bytes * (step + steps) / all / 64 * 64;
    return {Panel(task.panel + next / Chunks()) +
                next % Chunks() * plan_.chunk_steps * kSplitStepBytes + begin,
            end - begin};
  }

  SplitWindowTile TileAt(const Task& task, int64_t image, int64_t position,
                         int64_t panel) const {
    const int64_t column = panel * kSplitLines;
    const int64_t place = (image * shape_.out_height + task.row) *
                              shape_.out_width * shape_.outputs +
                          column;
    const int residual = 2 + (desc_.has_bias ? 1 : 0);
    const int result = residual + (desc_.has_residual ? 1 : 0);
    SplitWindowTile tile;
    tile.rows = std::min(kSplitLines, task.positions - position);
    tile.columns = std::min(kSplitLines, shape_.outputs - column);
    tile.places = places_.data() + position;
    tile.out = static_cast<float*>(buffers_[result]) + place;
    tile.out_stride = shape_.outputs;
    if (desc_.has_residual) tile.residual = Operand(residual) + place;
    if (desc_.has_bias) tile.bias = Operand(2) + column;
    tile.activate = activate_;
    tile.recompute = &Recompute;
    tile.data = this;
    tile.image = image;
    tile.first_row = task.row;
    tile.panel = panel;
    return tile;
  }

  static void Recompute(const SplitWindowTile& tile, int64_t row, float* sums) {
    const SplitConv& op = *static_cast<const SplitConv*>(tile.data);
    const SplitConvShape& shape = op.shape_;
    const int64_t out_row = tile.first_row + tile.places[row] / shape.out_width,
                  out_column = tile.places[row] % shape.out_width;
    const char* weight = op.Panel(tile.panel);
    for (int64_t channel = 0; channel < shape.channels; channel += kSplitDepth)
      for (const auto& [i, j] : op.plan_.taps) {
        const int64_t y = out_row * shape.strides[0] + i * shape.dilations[0] -
                          shape.low[0],
                      x = out_column * shape.strides[1] +
                          j * shape.dilations[1] - shape.low[1];
        if (y >= 0 && y < shape.height && x >= 0 && x < shape.width)
          MultiplySplitPixel(
              op.Operand(0) +
                  ((tile.image * shape.height + y) * shape.width + x) *
                      shape.channels +
                  channel,
              std::min(kSplitDepth, shape.channels - channel), weight, sums);
        weight += kSplitStepBytes;
      }
  }

  const device::ConvDesc desc_;
  const SplitConvShape shape_;
  const SplitConvPlan plan_;
  const VectorActivation activate_;
  const std::shared_ptr<PackedWeight> weight_;
  std::vector<int32_t> places_;  // see SplitWindowTile

  void* const* buffers_ = nullptr;
  char* scratch_ = nullptr;  // per thread: planes, two tiles and their total
  std::atomic<int64_t> next_task_{0};
};

// Per panel and step: the weight's 32 x 32 values. `weight` is [outputs,
// channels, window].
void FillWeight(const SplitConvShape& shape, const SplitConvPlan& plan,
                const float* weight, char* target) {
  const int64_t window = shape.kernel[0] * shape.kernel[1];
  std::vector<float> square(kTileSums);
  for (int64_t output = 0; output < shape.outputs; output += kSplitLines) {
    const int64_t outputs = std::min(kSplitLines, shape.outputs - output);
    for (int64_t channel = 0; channel < shape.channels;
         channel += kSplitDepth) {
      const int64_t channels = std::min(kSplitDepth, shape.channels - channel);
      for (const auto& [row, column] : plan.taps) {
        const int64_t tap = row * shape.kernel[1] + column;
        for (int64_t i = 0; i < outputs; ++i)
          for (int64_t k = 0; k < channels; ++k)
            square[static_cast<size_t>(k * kSplitLines + i)] =
                weight[((output + i) * shape.channels + channel + k) * window +
                       tap];
        PackSplitRhs({square.data(), 1, kSplitLines}, outputs, channels,
                     target);
        target += kSplitStepBytes;
      }
    }
  }
}

bool CanSplit(const float* weight, int64_t count) {
  const float limit = std::ldexp(1.0f, 127);
  return std::all_of(weight, weight + count,
                     [&](float x) { return std::fabs(x) < limit; });
}

absl::StatusOr<std::shared_ptr<PackedWeight>> PackWeight(
    DnnlContext& context, const device::ConvDesc& desc,
    const SplitConvPlan& plan, const void* weight) {
  PARTITA_ASSIGN_OR_RETURN(const dnnl_memory_desc_t source,
                           MakeMemoryDesc(desc.dtype, desc.weight_shape));
  PARTITA_ASSIGN_OR_RETURN(
      const dnnl_memory_desc_t wanted,
      MakeMemoryDesc(base::DType::kI8,
                     {plan.panels, plan.steps, kSplitStepBytes}));
  // Strides and dilations decide the order of taps.
  std::string layout = "split";
  for (const auto& [row, column] : plan.taps)
    absl::StrAppend(&layout, " ", row, ",", column);
  return PackConstant(
      context, weight, source, wanted,
      [&](void* target) {
        FillWeight(ShapeOf(desc), plan, static_cast<const float*>(weight),
                   static_cast<char*>(target));
        return absl::OkStatus();
      },
      layout);
}

bool IsSupported(const device::ConvDesc& desc) {
  return desc.direction == device::ConvDirection::kForward &&
         desc.channels_last && desc.groups == 1 && !desc.has_bytes() &&
         desc.dtype == base::DType::kF32 && desc.input_shape.size() == 4 &&
         *std::min_element(desc.low.begin(), desc.low.end()) >= 0 &&
         *std::min_element(desc.out_shape.begin(), desc.out_shape.end()) > 0 &&
         *std::min_element(desc.input_shape.begin(), desc.input_shape.end()) >
             0 &&
         (desc.activation == device::Activation::kNone || !desc.has_residual ||
          desc.activates_sum);
}

}  // namespace

absl::StatusOr<std::unique_ptr<CpuOp>> MakeSplitWindowConv(
    DnnlContext& context, const device::ConvDesc& desc, const void* weight,
    int threads) {
  if (weight == nullptr || !IsSupported(desc) || !HasSplitKernels())
    return std::unique_ptr<CpuOp>();
  const SplitConvShape shape = ShapeOf(desc);
  if (!IsFasterOnAmx(shape) || !CanSplit(static_cast<const float*>(weight),
                                         shape.outputs * shape.channels *
                                             shape.kernel[0] * shape.kernel[1]))
    return std::unique_ptr<CpuOp>();
  SplitConvPlan plan = PlanSplitConv(shape, threads);
  absl::StatusOr<std::shared_ptr<PackedWeight>> packed =
      PackWeight(context, desc, plan, weight);
  // oneDNN's copy is smaller.
  if (absl::IsResourceExhausted(packed.status()))
    return std::unique_ptr<CpuOp>();
  PARTITA_RETURN_IF_ERROR(packed.status());
  return std::make_unique<SplitConv>(desc, std::move(plan), *std::move(packed),
                                     threads);
}

}  // namespace partita::cpu
