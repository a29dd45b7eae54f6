// Threads take columns of the result; if there are few columns and many rows,
// also rows.
#include "runtime/cpu/row_product.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/status_macros.h"
#include "runtime/cpu/memory.h"
#include "runtime/cpu/rhs_panels.h"
#include "runtime/cpu/row_kernels.h"
#include "runtime/cpu/sparse_weight.h"
#include "runtime/cpu/threads.h"
#include "runtime/cpu/vector_activations.h"

namespace partita::cpu {
namespace {

// Smaller matrices stay in caches, and are read where they lie.
constexpr int64_t kLeastPackedBytes = 32 << 10;
// Weights of a tile that stay in the second-level cache.
constexpr int64_t kCachedWeights = 256 << 10;

float Activate(device::Activation activation, float x) {
  switch (activation) {
    case device::Activation::kNone:
      return x;
    case device::Activation::kRelu:
      return x > 0 ? x : x == x ? 0 : x;
    case device::Activation::kGeluErf:
      return 0.5F * x * (1 + std::erf(x * 0.70710678F));
    case device::Activation::kGeluTanh:  // (1 + tanh(a)) / 2 = 1 / (1 + e^-2a)
      return x / (1 + std::exp(-1.5957691F * (x + 0.044715F * x * x * x)));
    case device::Activation::kSilu:
      return x / (1 + std::exp(-x));
    case device::Activation::kTanh:
      return std::tanh(x);
    case device::Activation::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case device::Activation::kRelu6:
      return std::min(std::max(x, 0.0F), 6.0F);
    case device::Activation::kHardSwish:
      return x * std::min(std::max(x + 3, 0.0F), 6.0F) / 6;
  }
  return x;
}

class RowProduct : public CpuOp {
 public:
  // `panels` of the whole matrix, or `sparse` with a kernel, or neither.
  RowProduct(const device::GemmDesc& desc, std::shared_ptr<PackedWeight> panels,
             SparseWeight sparse, int threads)
      : desc_(desc),
        rows_(desc.batch * desc.m),
        kernel_(ChooseRowKernel()),
        activate_(HasVectorActivations() ? VectorActivationOf(desc.activation)
                                         : nullptr),
        panels_(std::move(panels)),
        sparse_(std::move(sparse)) {
    set_threads(threads);
    if (desc.batch > 1) {
      desc_.lhs_strides[1] =
          desc.m == 1 ? desc.lhs_strides[0] : desc.lhs_strides[1];
      desc_.out_strides[1] =
          desc.m == 1 ? desc.out_strides[0] : desc.out_strides[1];
    }
  }

  int64_t scratch_bytes() const override { return threads() * ThreadBytes(); }
  bool Packed(int index) const override {
    return index == 1 && (panels_ != nullptr || sparse_.kernel != nullptr);
  }
  std::string Description() const override {
    return sparse_.kernel != nullptr ? sparse_.description
           : panels_ != nullptr      ? "rows with panels"
                                     : "rows in place";
  }

  absl::Status Run(void* const* buffers, char* scratch) override {
    buffers_ = buffers;
    scratch_ = scratch;
    if (threads() == 1)
      RunPart(this, 0, 1);
    else
      RunOnThreads(threads(), &RunPart, this);
    return absl::OkStatus();
  }

 private:
  int64_t ThreadBytes() const {
    return AlignUp(std::min<int64_t>(rows_, kMostRows) * kRowPitch *
                   static_cast<int64_t>(sizeof(float)));
  }
  const float* Floats(int index) const {
    return static_cast<const float*>(buffers_[index]);
  }

  static void RunPart(void* data, int thread, int threads) {
    const RowProduct& op = *static_cast<RowProduct*>(data);
    // Whole vectors or panels for each thread.
    const int64_t width = op.panels_ != nullptr || op.sparse_.kernel != nullptr
                              ? kPanelColumns
                              : kRowLanes;
    const int64_t parts = (op.desc_.n + width - 1) / width;
    const int64_t groups = (op.rows_ + kMostRows - 1) / kMostRows;
    const int64_t column_threads = std::clamp<int64_t>(parts, 1, threads);
    const int64_t row_threads =
        std::min<int64_t>(groups, threads / column_threads);
    if (thread >= column_threads * row_threads) return;
    const auto border = [&](int64_t index) {
      return std::min(op.desc_.n, parts * index / column_threads * width);
    };
    const int64_t columns = thread % column_threads,
                  rows = thread / column_threads;
    const int64_t end = border(columns + 1);
    const int64_t first_row = groups * rows / row_threads * kMostRows,
                  end_row = std::min<int64_t>(
                      op.rows_, groups * (rows + 1) / row_threads * kMostRows);
    const int64_t tile = op.Tile(width);
    for (int64_t begin = border(columns); begin < end; begin += tile)
      for (int64_t row = first_row; row < end_row; row += kMostRows)
        op.RunTile(thread, row, std::min<int64_t>(end_row, row + kMostRows),
                   begin, std::min(end, begin + tile));
  }

  // With several groups of rows, a tile's weights are in the cache for all but
  // the first.
  int64_t Tile(int64_t width) const {
    if (rows_ <= kMostRows) return kRowTile;
    const int64_t weights =
        sparse_.kernel != nullptr
            ? sparse_.packed->bytes / static_cast<int64_t>(sizeof(float))
            : desc_.k * desc_.n;
    return std::clamp<int64_t>(kCachedWeights * desc_.n / weights / width, 1,
                               kRowTile / width) *
           width;
  }

  void ComputeSums(int64_t first_row, int64_t rows, int64_t begin, int64_t end,
                   float* sums) const {
    const float* const lhs = Floats(0) + first_row * desc_.lhs_strides[1];
    if (sparse_.kernel != nullptr)
      sparse_.kernel({lhs, desc_.lhs_strides[1], sparse_.packed->data, desc_.k,
                      desc_.n, sums, kRowPitch, begin, end},
                     rows);
    else
      kernel_({lhs, Floats(1), sums, desc_.lhs_strides[1], desc_.rhs_strides[1],
               desc_.rhs_strides[2], desc_.k, begin, end,
               panels_ == nullptr ? nullptr
                                  : static_cast<const float*>(panels_->data)},
              rows);
  }

  void RunTile(int thread, int64_t first_row, int64_t end_row, int64_t begin,
               int64_t end) const {
    float* const sums =
        reinterpret_cast<float*>(scratch_ + thread * ThreadBytes());
    ComputeSums(first_row, end_row - first_row, begin, end, sums);
    int index = 2;
    const float* const bias = desc_.has_bias ? Floats(index++) : nullptr;
    const float* const residual =
        desc_.has_residual ? Floats(index++) : nullptr;
    float* const out = static_cast<float*>(buffers_[index]);
    for (int64_t row = first_row; row < end_row; ++row) {
      float* const values = sums + (row - first_row) * kRowPitch - begin;
      if (bias != nullptr)
        for (int64_t n = begin; n < end; ++n) values[n] += bias[n];
      ActivateRow(values + begin, end - begin);
      const int64_t at = row * desc_.out_strides[1];
      for (int64_t n = begin; n < end; ++n)
        out[at + n] =
            residual != nullptr ? values[n] + residual[at + n] : values[n];
    }
  }

  // Whole vectors may reach into what lies between rows of sums.
  void ActivateRow(float* values, int64_t count) const {
    if (activate_ != nullptr)
      return activate_(values, (count + kRowLanes - 1) / kRowLanes);
    for (int64_t i = 0; i < count; ++i)
      values[i] = Activate(desc_.activation, values[i]);
  }

  device::GemmDesc desc_;
  const int64_t rows_;
  const RowKernel kernel_;
  const VectorActivation activate_;  // null: one by one
  const std::shared_ptr<PackedWeight> panels_;
  const SparseWeight sparse_;
  void* const* buffers_ = nullptr;  // of the current run
  char* scratch_ = nullptr;
};

// True if the rows of the batch's matrices are evenly spaced.
bool IsOneMatrix(const device::GemmDesc& desc,
                 const std::array<int64_t, 3>& strides) {
  return desc.batch == 1 || desc.m == 1 || strides[0] == desc.m * strides[1];
}

// Columns that are contiguous need no copy.
bool IsWorthPacking(const device::GemmDesc& desc) {
  const int64_t bytes = desc.k * desc.n * static_cast<int64_t>(sizeof(float));
  return desc.rhs_strides[2] == 1 && desc.rhs_strides[1] != 1 &&
         desc.n % kPanelColumns == 0 && bytes >= kLeastPackedBytes;
}

}  // namespace

bool IsRowProduct(const device::GemmDesc& desc) {
  const std::array<int64_t, 3>& rhs = desc.rhs_strides;
  return desc.dtype == base::DType::kF32 && desc.batch >= 1 && desc.m >= 1 &&
         (desc.batch == 1 || rhs[0] == 0) &&
         IsOneMatrix(desc, desc.lhs_strides) &&
         IsOneMatrix(desc, desc.out_strides) &&
         (desc.k == 1 || desc.lhs_strides[2] == 1) &&
         (desc.n == 1 || desc.out_strides[2] == 1) &&
         (rhs[2] == 1 || rhs[1] == 1);
}

absl::StatusOr<std::unique_ptr<CpuOp>> MakeRowProduct(
    DnnlContext& context, const device::GemmDesc& desc, const void* rhs,
    int threads) {
  PARTITA_ASSIGN_OR_RETURN(SparseWeight sparse, PackSparse(context, desc, rhs));
  if (sparse.kernel == nullptr && desc.batch * desc.m > kMostRows)
    return std::unique_ptr<CpuOp>();
  std::shared_ptr<PackedWeight> panels;
  if (sparse.kernel == nullptr && rhs != nullptr && IsWorthPacking(desc)) {
    PARTITA_ASSIGN_OR_RETURN(panels, PackRhsPanels(context, desc, rhs));
  }
  return std::make_unique<RowProduct>(desc, std::move(panels),
                                      std::move(sparse), threads);
}

}  // namespace partita::cpu
