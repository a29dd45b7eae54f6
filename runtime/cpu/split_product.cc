// A task computes a rectangle of the result, depth block by depth block. It
// packs a block of lhs, which stays in the second-level cache, then a few
// panels of rhs at a time, and multiplies each with all panels of lhs. Tasks
// share nothing: with more threads, more of them pack the same block.
#include "runtime/cpu/split_product.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>

#include "runtime/base/status_macros.h"
#include "runtime/cpu/rhs_panels.h"
#include "runtime/cpu/split_kernels.h"
#include "runtime/cpu/threads.h"

namespace partita::cpu {
namespace {

// A block of lhs of at most this size and kGroup panels of rhs take 1.2 MB.
constexpr int64_t kMostRows = 384, kMostDepth = 384;
// Panels of rhs that are packed together: rows of rhs are read in pieces of 512
// bytes.
constexpr int64_t kGroup = 4;
// The least columns of a task when threads divide them.
constexpr int64_t kFewestColumns = 128;

int64_t Blocks(int64_t size, int64_t block) {
  return (size + block - 1) / block;
}
// The size of `blocks` almost equal blocks, in whole panels or steps.
int64_t BlockSize(int64_t size, int64_t blocks) {
  static_assert(kSplitLines == kSplitDepth);
  return Blocks(Blocks(size, blocks), kSplitLines) * kSplitLines;
}

// Lines of a matrix. Panels are `panel_stride` elements apart.
struct SplitPanels {
  SplitLines lines;  // of the first panel
  int64_t panel_stride;
};

SplitPanels PanelsOf(const SplitLines& lines) {
  return {lines, kSplitLines * lines.line_stride};
}

// Beginning with `line`, which is the first of a panel.
SplitPanels From(const SplitPanels& panels, int64_t line, int64_t depth) {
  const SplitLines& lines = panels.lines;
  return {{lines.data + line / kSplitLines * panels.panel_stride +
               depth * lines.depth_stride,
           lines.line_stride, lines.depth_stride},
          panels.panel_stride};
}

// Packs panels step by step, because neighbours in memory may be lines.
template <typename Pack>
void PackPanels(Pack pack, const SplitPanels& from, int64_t lines,
                int64_t depth, char* panels) {
  const int64_t steps = Blocks(depth, kSplitDepth);
  for (int64_t group = 0; group < lines; group += kGroup * kSplitLines) {
    const int64_t end = std::min(lines, group + kGroup * kSplitLines);
    for (int64_t step = 0; step < steps; ++step) {
      const int64_t k = step * kSplitDepth;
      for (int64_t line = group; line < end; line += kSplitLines)
        pack(From(from, line, k).lines, std::min(kSplitLines, lines - line),
             std::min(kSplitDepth, depth - k),
             panels + (line / kSplitLines * steps + step) * kSplitStepBytes);
    }
  }
}

class SplitProduct : public CpuOp {
 public:
  // `panels` of rhs, or null.
  SplitProduct(const device::GemmDesc& desc,
               std::shared_ptr<PackedWeight> panels, int threads)
      : desc_(desc),
        activate_(VectorActivationOf(desc.activation)),
        panels_(std::move(panels)) {
    set_threads(threads);
    depth_ = BlockSize(desc.k, Blocks(desc.k, kMostDepth));
    // Division by columns repeats the packing of lhs, which costs less than
    // that of rhs.
    const int64_t column_blocks =
        std::clamp<int64_t>(desc.n / kFewestColumns, 1, threads);
    columns_ = BlockSize(desc.n, column_blocks);
    rows_ = BlockSize(desc.m,
                      std::max(Blocks(desc.m, kMostRows),
                               Blocks(threads, desc.batch * column_blocks)));
    tasks_ = desc.batch * Blocks(desc.m, rows_) * Blocks(desc.n, columns_);
  }

  int64_t tasks() const { return tasks_; }
  int64_t scratch_bytes() const override { return threads() * ThreadBytes(); }
  bool Packed(int index) const override {
    return index == 1 && panels_ != nullptr;
  }
  std::string Description() const override { return "split:amx_bf16"; }

  absl::Status Run(void* const* buffers, char* scratch) override {
    buffers_ = buffers;
    scratch_ = scratch;
    next_task_.store(0, std::memory_order_relaxed);
    RunOnThreads(threads(), &RunTasks, this);
    return absl::OkStatus();
  }

 private:
  // Part of the result, or the first row and column of one.
  struct Rectangle {
    int64_t row, column, rows, columns;
  };
  // One step of a task.
  struct Block {
    SplitPanels lhs, rhs;
    int64_t depth, rest;  // rest: of the sum, with this block
    bool first, last;
    float* out;
    const float* residual;  // null: none
    const float* bias;      // null: none
  };

  static int64_t PanelBytes(int64_t depth) {
    return depth / kSplitDepth * kSplitStepBytes;
  }
  int64_t LhsBytes() const { return rows_ / kSplitLines * PanelBytes(depth_); }
  int64_t RhsBytes() const { return kGroup * PanelBytes(depth_); }
  static constexpr int64_t kTileSums = kSplitLines * kSplitLines;
  int64_t ThreadBytes() const {
    return AlignUp(LhsBytes() + RhsBytes() + 2 * kTileSums * 4);
  }

  static void RunTasks(void* data, int thread, int threads) {
    SplitProduct& op = *static_cast<SplitProduct*>(data);
    ConfigureTiles();
    while (true) {
      const int64_t task =
          op.next_task_.fetch_add(1, std::memory_order_relaxed);
      if (task >= op.tasks_) break;
      op.RunTask(task, op.scratch_ + thread * op.ThreadBytes());
    }
    ReleaseTiles();
  }

  const float* Operand(int index) const {
    return static_cast<const float*>(buffers_[index]);
  }

  SplitPanels Rhs(int64_t batch) const {
    static_assert(kPanelColumns == kSplitLines);
    if (panels_ != nullptr)
      return {{static_cast<const float*>(panels_->data), 1, kPanelColumns},
              desc_.k * kPanelColumns};
    return PanelsOf({Operand(1) + batch * desc_.rhs_strides[0],
                     desc_.rhs_strides[2], desc_.rhs_strides[1]});
  }

  void RunTask(int64_t task, char* scratch) const {
    const int64_t column_blocks = Blocks(desc_.n, columns_),
                  row_blocks = Blocks(desc_.m, rows_);
    const int64_t column = task % column_blocks * columns_;
    task /= column_blocks;
    const int64_t row = task % row_blocks * rows_, batch = task / row_blocks;
    const Rectangle area = {row, column, std::min(rows_, desc_.m - row),
                            std::min(columns_, desc_.n - column)};
    const int64_t out =
        batch * desc_.out_strides[0] + row * desc_.out_strides[1] + column;
    const int residual = 2 + (desc_.has_bias ? 1 : 0);
    const int result = residual + (desc_.has_residual ? 1 : 0);
    const SplitPanels lhs =
        PanelsOf({Operand(0) + batch * desc_.lhs_strides[0],
                  desc_.lhs_strides[1], desc_.lhs_strides[2]});
    const SplitPanels rhs = Rhs(batch);
    for (int64_t k = 0; k < desc_.k; k += depth_) {
      RunBlock(
          {From(lhs, row, k), From(rhs, column, k),
           std::min(depth_, desc_.k - k), desc_.k - k, k == 0,
           k + depth_ >= desc_.k, static_cast<float*>(buffers_[result]) + out,
           desc_.has_residual ? Operand(residual) + out : nullptr,
           desc_.has_bias ? Operand(2) + column : nullptr},
          area, scratch);
    }
  }

  void RunBlock(const Block& block, const Rectangle& area,
                char* scratch) const {
    char* const lhs = scratch;
    char* const rhs = lhs + LhsBytes();
    const int64_t steps = Blocks(block.depth, kSplitDepth),
                  panel = steps * kSplitStepBytes;
    float* sums = reinterpret_cast<float*>(rhs + RhsBytes());
    float* other_sums = sums + kTileSums;
    SplitTile finished;
    PackPanels(PackSplitLhs, block.lhs, area.rows, block.depth, lhs);
    for (int64_t column = 0; column < area.columns; column += kSplitLines) {
      const int64_t place = column / kSplitLines % kGroup;
      if (place == 0)
        PackPanels(PackSplitRhs, From(block.rhs, column, 0),
                   std::min(kGroup * kSplitLines, area.columns - column),
                   block.depth, rhs);
      for (int64_t row = 0; row < area.rows; row += kSplitLines) {
        SplitTile tile =
            TileAt(block, {row, column, std::min(kSplitLines, area.rows - row),
                           std::min(kSplitLines, area.columns - column)});
        MultiplySplit(lhs + row / kSplitLines * panel, rhs + place * panel,
                      steps, finished, tile, FetchAt(block, area, row, column),
                      sums);
        tile.sums = sums;
        finished = tile;
        std::swap(sums, other_sums);
      }
    }
    WriteSplitTile(finished);
  }

  // A part of the panel of a constant rhs that is packed `kGroup` panels after
  // the one at `column`, for each row of tiles another part: hardware fetches
  // no further than the end of a page.
  SplitFetch FetchAt(const Block& block, const Rectangle& area, int64_t row,
                     int64_t column) const {
    if (panels_ == nullptr) return {};
    SplitPanels next = From(block.rhs, column + kGroup * kSplitLines, 0);
    int64_t depth = block.depth;
    if (column + kGroup * kSplitLines >= area.columns) {
      if (block.last) return {};
      depth = std::min(depth_, block.rest - block.depth);
      next = From(block.rhs, column / kSplitLines % kGroup * kSplitLines,
                  block.depth);
    }
    const int64_t parts = Blocks(area.rows, kSplitLines),
                  part = row / kSplitLines, bytes = depth * kSplitLines * 4;
    const int64_t begin = bytes * part / parts / 64 * 64,
                  end = bytes * (part + 1) / parts / 64 * 64;
    return {reinterpret_cast<const char*>(next.lines.data) + begin,
            end - begin};
  }

  SplitTile TileAt(const Block& block, const Rectangle& area) const {
    const int64_t stride = desc_.out_strides[1];
    const int64_t place = area.row * stride + area.column;
    SplitTile tile;
    tile.rows = area.rows;
    tile.columns = area.columns;
    tile.out = block.out + place;
    tile.out_stride = stride;
    // The residual may be the result's memory: it is added first.
    if (!block.first)
      tile.initial = tile.out;
    else if (block.residual != nullptr)
      tile.initial = block.residual + place;
    if (block.last) {
      if (block.bias != nullptr) tile.bias = block.bias + area.column;
      tile.activate = activate_;
    }
    tile.lhs = From(block.lhs, area.row, 0).lines;
    tile.rhs = From(block.rhs, area.column, 0).lines;
    tile.depth = block.depth;
    return tile;
  }

  const device::GemmDesc desc_;
  const VectorActivation activate_;
  const std::shared_ptr<PackedWeight> panels_;
  int64_t depth_, rows_, columns_;  // of a block
  int64_t tasks_;

  void* const* buffers_ = nullptr;
  char* scratch_ = nullptr;  // per thread: panels of lhs and rhs, two tiles
  std::atomic<int64_t> next_task_{0};
};

// Whether a constant rhs is copied into panels.
bool IsOneMatrix(const device::GemmDesc& desc) { return desc.batch == 1; }

// oneDNN packs a constant once, which is faster for few rows, and for less
// depth until more rows: for 196 rows, ResNet-50's, ViT-B's and
// Inception-NeXt's weights, 256 to 3072 deep, take 0.7 to 0.97 of oneDNN's
// time, but MobileNetV3-L's and EfficientFormerV2-S1's, 80 to 120 deep, up
// to 1.18.
int64_t FewestRows(const device::GemmDesc& desc, bool constant_rhs) {
  constexpr int64_t kGreatDepth = 256;
  if (!constant_rhs) return 64;
  return IsOneMatrix(desc) && desc.k >= kGreatDepth ? 128 : 256;
}

bool IsSupported(const device::GemmDesc& desc, bool constant_rhs) {
  if (desc.dtype != base::DType::kF32 || desc.has_bytes() ||
      desc.is_for_training() || desc.m < FewestRows(desc, constant_rhs) ||
      desc.n < 64 || desc.k < 64)
    return false;
  return (desc.lhs_strides[1] == 1 || desc.lhs_strides[2] == 1) &&
         (desc.rhs_strides[1] == 1 || desc.rhs_strides[2] == 1) &&
         desc.out_strides[2] == 1;
}

// A batch that shares rhs becomes rows.
device::GemmDesc WithoutBatch(device::GemmDesc desc) {
  if (desc.rhs_strides[0] == 0 &&
      desc.lhs_strides[0] == desc.m * desc.lhs_strides[1] &&
      desc.out_strides[0] == desc.m * desc.out_strides[1]) {
    desc.m *= desc.batch;
    desc.batch = 1;
  }
  return desc;
}

absl::StatusOr<std::unique_ptr<CpuOp>> Make(DnnlContext& context,
                                            const device::GemmDesc& desc,
                                            const void* rhs, int threads) {
  if (!IsSupported(desc, rhs != nullptr) || !HasSplitKernels())
    return std::unique_ptr<CpuOp>();
  // Tasks do not divide the depth: a small result leaves threads idle.
  if (2 * SplitProduct(desc, nullptr, threads).tasks() < threads)
    return std::unique_ptr<CpuOp>();
  std::shared_ptr<PackedWeight> panels;
  if (rhs != nullptr && IsOneMatrix(desc)) {
    auto packed = PackRhsPanels(context, desc, rhs);
    // Without memory for a copy, the constant is read where it lies.
    if (!packed.ok() && !absl::IsResourceExhausted(packed.status()))
      return packed.status();
    if (packed.ok()) panels = *std::move(packed);
  }
  return std::make_unique<SplitProduct>(desc, std::move(panels), threads);
}

bool IsPointwise(const device::ConvDesc& desc) {
  const auto all = [](auto begin, auto end, int64_t expected) {
    return std::all_of(begin, end,
                       [&](int64_t size) { return size == expected; });
  };
  return desc.direction == device::ConvDirection::kForward &&
         desc.channels_last && desc.groups == 1 &&
         all(desc.strides.begin(), desc.strides.end(), 1) &&
         all(desc.low.begin(), desc.low.end(), 0) &&
         all(desc.high.begin(), desc.high.end(), 0) &&
         all(desc.weight_shape.begin() + 2, desc.weight_shape.end(), 1);
}

// The convolution as a product, whose rows are pixels.
device::GemmDesc ProductOf(const device::ConvDesc& desc) {
  device::GemmDesc product;
  product.dtype = desc.dtype;
  product.factors = desc.factors;
  for (size_t i = 0; i + 1 < desc.input_shape.size(); ++i)
    product.m *= desc.input_shape[i];
  product.n = desc.weight_shape[0];
  product.k = desc.weight_shape[1];
  product.lhs_strides = {0, product.k, 1};
  product.rhs_strides = {0, 1, product.k};
  product.out_strides = {0, product.n, 1};
  product.has_bias = desc.has_bias;
  product.has_residual = desc.has_residual;
  product.activation = desc.activation;
  return product;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CpuOp>> MakeSplitProduct(
    DnnlContext& context, const device::GemmDesc& desc, const void* rhs,
    int threads) {
  // A residual is added before the activation.
  if (desc.activation != device::Activation::kNone && desc.has_residual)
    return std::unique_ptr<CpuOp>();
  return Make(context, WithoutBatch(desc), rhs, threads);
}

absl::StatusOr<std::unique_ptr<CpuOp>> MakeSplitPointwiseConv(
    DnnlContext& context, const device::ConvDesc& desc, const void* weight,
    int threads) {
  // oneDNN is faster for ResNet-50's convolutions to 64 channels.
  constexpr int64_t kFewestOutputs = 128;
  if (!IsPointwise(desc) || desc.weight_shape[0] < kFewestOutputs ||
      (desc.activation != device::Activation::kNone && desc.has_residual &&
       !desc.activates_sum))
    return std::unique_ptr<CpuOp>();
  return Make(context, ProductOf(desc), weight, threads);
}

}  // namespace partita::cpu
