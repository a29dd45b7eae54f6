// Threads take tasks, each of some columns, from one counter.
#include "runtime/cpu/panel_gemm.h"

#include <algorithm>
#include <utility>

#include "runtime/base/status_macros.h"
#include "runtime/cpu/memory.h"
#include "runtime/cpu/threads.h"

namespace partita::cpu {
namespace {

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
int64_t FewRowsColumns(int64_t columns, int threads, int64_t most_columns) {
  const int64_t share =
      (columns + threads * kGranule - 1) / (threads * kGranule) * kGranule;
  return std::min({columns, share, most_columns});
}

}  // namespace

PanelGemm::PanelGemm(const char* name, const device::GemmDesc& desc,
                     int threads)
    : name_(name), desc_(desc), statuses_(static_cast<size_t>(threads)) {
  set_threads(threads);
  // One product for the whole batch reads each weight once.
  if (desc_.batch > 1 && desc_.rhs_strides[0] == 0 &&
      desc_.lhs_strides[0] == desc_.m * desc_.lhs_strides[1] &&
      desc_.out_strides[0] == desc_.m * desc_.out_strides[1]) {
    desc_.m *= desc_.batch;
    desc_.batch = 1;
  }
}

absl::Status PanelGemm::Prepare(const DnnlContext& context, bool few_rows,
                                int64_t most_columns, int64_t shared_bytes) {
  few_rows_ = few_rows;
  if (few_rows_) {
    columns_ = FewRowsColumns(desc_.n, threads(), most_columns);
    shared_bytes_ = AlignUp(shared_bytes);
    return absl::OkStatus();
  }
  columns_ = PanelColumns(desc_.k, desc_.n, threads());
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

float* PanelGemm::Out(int64_t batch, int64_t row, int64_t column) const {
  const int index = 3 + (desc_.has_zero ? 1 : 0) + (desc_.has_bias ? 1 : 0);
  return static_cast<float*>(buffers_[index]) + batch * desc_.out_strides[0] +
         row * desc_.out_strides[1] + column * desc_.out_strides[2];
}

const float* PanelGemm::Bias() const {
  return desc_.has_bias
             ? static_cast<const float*>(buffers_[desc_.has_zero ? 4 : 3])
             : nullptr;
}

BlockProductDesc PanelGemm::Describe(int64_t rows, int64_t columns) const {
  BlockProductDesc product;
  product.m = rows, product.n = columns, product.k = desc_.k;
  product.lhs_strides = {desc_.lhs_strides[1], desc_.lhs_strides[2]};
  product.rhs_strides = {1, desc_.k};
  if (AlongColumns()) product.rhs_strides = {columns, 1};
  product.out_strides = {desc_.out_strides[1], desc_.out_strides[2]};
  return product;
}

absl::Status PanelGemm::Run(void* const* buffers, char* scratch) {
  buffers_ = buffers;
  scratch_begin_ = scratch;
  next_task_.store(0, std::memory_order_relaxed);
  if (few_rows_) Begin();
  RunOnThreads(threads(), &RunTasks, this);
  for (absl::Status& status : statuses_)
    PARTITA_RETURN_IF_ERROR(std::exchange(status, absl::OkStatus()));
  return absl::OkStatus();
}

void PanelGemm::RunTasks(void* data, int thread, int threads) {
  PanelGemm& op = *static_cast<PanelGemm*>(data);
  absl::Status& status = op.statuses_[static_cast<size_t>(thread)];
  while (status.ok()) {
    const int64_t task = op.next_task_.fetch_add(1, std::memory_order_relaxed);
    if (task >= op.desc_.batch * op.Panels()) return;
    const int64_t batch = task / op.Panels(),
                  column = task % op.Panels() * op.columns_;
    if (op.few_rows_)
      op.MultiplyFew(batch, column, std::min(op.columns_, op.desc_.n - column));
    else
      status = op.MultiplyPanel(batch, column, thread);
  }
}

absl::Status PanelGemm::MultiplyPanel(int64_t batch, int64_t column,
                                      int thread) {
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
    for (int64_t i = row; i < row + rows; ++i)
      Finish(Out(batch, i, column), desc_.out_strides[2], column, columns);
  }
  return absl::OkStatus();
}

}  // namespace partita::cpu
