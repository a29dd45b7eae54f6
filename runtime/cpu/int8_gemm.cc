// A few rows: weights are read once and converted in registers. Many rows: each
// thread converts panels of columns to f32 in its scratch, and oneDNN
// multiplies by these.
#include "runtime/cpu/int8_gemm.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/status_macros.h"
#include "runtime/cpu/block_product.h"
#include "runtime/cpu/memory.h"
#include "runtime/cpu/threads.h"
#include "runtime/cpu/widen_rows.h"

namespace partita::cpu {
namespace {

constexpr int64_t kMostFewRows = 16;
constexpr int64_t kBlockRows = 256;
// A panel and the rows that it meets stay in a second-level cache of 1 MB.
constexpr int64_t kPanelElements = 96 * 1024;
constexpr int64_t kMostPanelColumns = 256;
constexpr int64_t kGranule = 16;  // columns

int64_t PanelColumns(int64_t depth, int64_t columns, int threads) {
  const int64_t fitting = kPanelElements / depth / kGranule * kGranule;
  const int64_t share = (columns + threads - 1) / threads / kGranule * kGranule;
  return std::min(columns, std::clamp(std::min(fitting, share), kGranule,
                                      kMostPanelColumns));
}

// Long stretches of memory, and a task for each thread.
int64_t FewRowsColumns(int64_t columns, int threads) {
  const int64_t share =
      (columns + threads * kGranule - 1) / (threads * kGranule) * kGranule;
  return std::min({columns, share, kMostColumns});
}

class Int8WeightGemm : public CpuOp {
 public:
  Int8WeightGemm(const device::GemmDesc& desc, int threads)
      : desc_(desc), statuses_(static_cast<size_t>(threads)) {
    set_threads(threads);
    // One product for the whole batch reads each weight once.
    if (desc_.batch > 1 && desc_.rhs_strides[0] == 0 &&
        desc_.lhs_strides[0] == desc_.m * desc_.lhs_strides[1] &&
        desc_.out_strides[0] == desc_.m * desc_.out_strides[1]) {
      desc_.m *= desc_.batch;
      desc_.batch = 1;
    }
    few_rows_ = desc_.m <= kMostFewRows && CanMultiplyFewRows(Few(0, 0));
    columns_ = few_rows_ ? FewRowsColumns(desc_.n, threads)
                         : PanelColumns(desc_.k, desc_.n, threads);
  }

  absl::Status Prepare(const DnnlContext& context) {
    if (few_rows_) return absl::OkStatus();
    for (const int64_t columns : {columns_, desc_.n % columns_}) {
      for (const int64_t rows :
           {std::min(kBlockRows, desc_.m), desc_.m % kBlockRows}) {
        PARTITA_ASSIGN_OR_RETURN(
            BlockProduct product,
            BlockProduct::Create(context,
                                 Describe(std::max<int64_t>(rows, 1),
                                          std::max<int64_t>(columns, 1)),
                                 nullptr, threads()));
        scratch_ = std::max(scratch_, product.scratch_bytes());
        products_.push_back(std::move(product));
      }
    }
    panel_bytes_ =
        AlignUp(columns_ * desc_.k * static_cast<int64_t>(sizeof(float)));
    scratch_ = AlignUp(scratch_);
    return absl::OkStatus();
  }

  int64_t scratch_bytes() const override {
    return threads() * (panel_bytes_ + scratch_);
  }
  bool Packed(int index) const override { return false; }
  std::string Description() const override {
    return few_rows_ ? "own int8" : "own int8+" + products_[0].description();
  }

  absl::Status Run(void* const* buffers, char* scratch) override {
    buffers_ = buffers;
    scratch_begin_ = scratch;
    next_task_.store(0, std::memory_order_relaxed);
    RunOnThreads(threads(), &RunTasks, this);
    for (absl::Status& status : statuses_)
      PARTITA_RETURN_IF_ERROR(std::exchange(status, absl::OkStatus()));
    return absl::OkStatus();
  }

 private:
  int64_t Panels() const { return (desc_.n + columns_ - 1) / columns_; }

  const float* Lhs(int64_t batch) const {
    return static_cast<const float*>(buffers_[0]) +
           batch * desc_.lhs_strides[0];
  }
  const int8_t* Weights(int64_t batch, int64_t column) const {
    return static_cast<const int8_t*>(buffers_[1]) +
           batch * desc_.rhs_strides[0] + column * desc_.rhs_strides[2];
  }
  const float* Scale() const { return static_cast<const float*>(buffers_[2]); }
  const float* Bias() const {
    return desc_.has_bias ? static_cast<const float*>(buffers_[3]) : nullptr;
  }
  float* Out(int64_t batch, int64_t row, int64_t column) const {
    return static_cast<float*>(buffers_[desc_.has_bias ? 4 : 3]) +
           batch * desc_.out_strides[0] + row * desc_.out_strides[1] +
           column * desc_.out_strides[2];
  }

  FewRows Few(int64_t batch, int64_t column) const {
    FewRows few;
    few.rows = desc_.m;
    few.columns = std::min(columns_, desc_.n - column);
    few.depth = desc_.k;
    few.lhs_row = desc_.lhs_strides[1], few.lhs_depth = desc_.lhs_strides[2];
    few.weight_depth = desc_.rhs_strides[1];
    few.weight_column = desc_.rhs_strides[2];
    few.out_row = desc_.out_strides[1], few.out_column = desc_.out_strides[2];
    if (buffers_ == nullptr) return few;
    few.lhs = Lhs(batch);
    few.weights = Weights(batch, column);
    few.out = Out(batch, 0, column);
    few.scale = Scale() + column;
    few.bias = Bias() == nullptr ? nullptr : Bias() + column;
    return few;
  }

  BlockProductDesc Describe(int64_t rows, int64_t columns) const {
    BlockProductDesc product;
    product.m = rows, product.n = columns, product.k = desc_.k;
    product.lhs_strides = {desc_.lhs_strides[1], desc_.lhs_strides[2]};
    product.rhs_strides = {1, desc_.k};
    if (AlongColumns()) product.rhs_strides = {columns, 1};
    product.out_strides = {desc_.out_strides[1], desc_.out_strides[2]};
    return product;
  }

  bool AlongColumns() const { return desc_.rhs_strides[2] == 1; }

  static void RunTasks(void* data, int thread, int threads) {
    Int8WeightGemm& op = *static_cast<Int8WeightGemm*>(data);
    absl::Status& status = op.statuses_[static_cast<size_t>(thread)];
    while (status.ok()) {
      const int64_t task =
          op.next_task_.fetch_add(1, std::memory_order_relaxed);
      if (task >= op.desc_.batch * op.Panels()) return;
      const int64_t batch = task / op.Panels(),
                    column = task % op.Panels() * op.columns_;
      if (op.few_rows_)
        MultiplyFewRows(op.Few(batch, column));
      else
        status = op.MultiplyPanel(batch, column, thread);
    }
  }

  // Converts columns to f32, contiguous along columns or along k.
  void WidenPanel(int64_t batch, int64_t column, int64_t columns,
                  float* panel) const {
    const int64_t step = desc_.rhs_strides[1];
    if (AlongColumns()) {
      for (int64_t k = 0; k < desc_.k; ++k)
        Widen(Weights(batch, column) + k * step, columns, panel + k * columns);
      return;
    }
    for (int64_t i = 0; i < columns; ++i) {
      const int8_t* const from = Weights(batch, column + i);
      float* const to = panel + i * desc_.k;
      if (step == 1)
        Widen(from, desc_.k, to);
      else
        for (int64_t k = 0; k < desc_.k; ++k) to[k] = from[k * step];
    }
  }

  absl::Status MultiplyPanel(int64_t batch, int64_t column, int thread) {
    const int64_t columns = std::min(columns_, desc_.n - column);
    char* const scratch = scratch_begin_ + thread * (panel_bytes_ + scratch_);
    float* const panel = reinterpret_cast<float*>(scratch);
    WidenPanel(batch, column, columns, panel);
    for (int64_t row = 0; row < desc_.m; row += kBlockRows) {
      const int64_t rows = std::min(kBlockRows, desc_.m - row);
      const size_t index = (columns == columns_ ? 0 : 2) +
                           (rows == std::min(kBlockRows, desc_.m) ? 0 : 1);
      PARTITA_RETURN_IF_ERROR(products_[index].Run(
          thread, Lhs(batch) + row * desc_.lhs_strides[1], panel,
          Out(batch, row, column), scratch + panel_bytes_));
      Finish(batch, row, rows, column, columns);
    }
    return absl::OkStatus();
  }

  // out = scale * out + bias
  void Finish(int64_t batch, int64_t row, int64_t rows, int64_t column,
              int64_t columns) const {
    const float* const scale = Scale() + column;
    const float* const bias = Bias();
    const int64_t step = desc_.out_strides[2];
    for (int64_t i = row; i < row + rows; ++i) {
      float* const out = Out(batch, i, column);
      if (step == 1 && bias != nullptr)
        for (int64_t j = 0; j < columns; ++j)
          out[j] = out[j] * scale[j] + bias[column + j];
      else if (step == 1)
        for (int64_t j = 0; j < columns; ++j) out[j] *= scale[j];
      else
        for (int64_t j = 0; j < columns; ++j)
          out[j * step] = out[j * step] * scale[j] +
                          (bias == nullptr ? 0.0f : bias[column + j]);
    }
  }

  device::GemmDesc desc_;
  bool few_rows_ = false;
  int64_t columns_ = 1;  // of a task
  // By width (columns_, the rest), then by height (a block, the rest).
  std::vector<BlockProduct> products_;
  int64_t panel_bytes_ = 0, scratch_ = 0;  // per thread
  void* const* buffers_ = nullptr;
  char* scratch_begin_ = nullptr;
  std::atomic<int64_t> next_task_{0};
  std::vector<absl::Status> statuses_;  // by thread
};

}  // namespace

absl::StatusOr<std::unique_ptr<CpuOp>> MakeInt8WeightGemm(
    const DnnlContext& context, const device::GemmDesc& desc, int threads) {
  auto op = std::make_unique<Int8WeightGemm>(desc, threads);
  PARTITA_RETURN_IF_ERROR(op->Prepare(context));
  return std::unique_ptr<CpuOp>(std::move(op));
}

}  // namespace partita::cpu
