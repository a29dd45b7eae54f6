// Matrix products of f32 with weights that are stored narrower. A few rows: the
// weights are read once and widened in registers. Many rows: each thread widens
// panels of columns to f32 in its scratch, and oneDNN multiplies by these.
#ifndef PARTITA_RUNTIME_CPU_PANEL_GEMM_H_
#define PARTITA_RUNTIME_CPU_PANEL_GEMM_H_

#include <atomic>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/cpu/block_product.h"
#include "runtime/cpu/library_op.h"
#include "runtime/device/operations.h"

namespace partita::cpu {

// The most rows for which a product reads weights without panels.
inline constexpr int64_t kMostFewRows = 16;

class PanelGemm : public CpuOp {
 public:
  int64_t scratch_bytes() const override {
    return shared_bytes_ + threads() * (panel_bytes_ + scratch_);
  }
  bool Packed(int index) const override { return false; }
  std::string Description() const override {
    return few_rows_ ? name_ : name_ + "+" + products_[0].description();
  }
  absl::Status Run(void* const* buffers, char* scratch) override;

 protected:
  // `name` is for profiles. A batch that shares its weights becomes rows.
  PanelGemm(const char* name, const device::GemmDesc& desc, int threads);

  // Prepares a few rows, which tasks of at most `most_columns` multiply with
  // `shared_bytes` of scratch, or panels. Called once.
  absl::Status Prepare(const DnnlContext& context, bool few_rows,
                       int64_t most_columns, int64_t shared_bytes);

  const device::GemmDesc& desc() const { return desc_; }
  void* buffer(int index) const { return buffers_[index]; }
  char* shared_scratch() const { return scratch_begin_; }
  const float* Lhs(int64_t batch) const {
    return static_cast<const float*>(buffers_[0]) +
           batch * desc_.lhs_strides[0];
  }
  float* Out(int64_t batch, int64_t row, int64_t column) const;
  // One number per column; null: none.
  const float* Bias() const;
  // True if a panel is contiguous along columns, false if along k.
  bool AlongColumns() const { return desc_.rhs_strides[2] == 1; }

 private:
  // Called once per run, before threads start, if there are a few rows.
  virtual void Begin() {}
  virtual void MultiplyFew(int64_t batch, int64_t column, int64_t columns) = 0;
  virtual void WidenPanel(int64_t batch, int64_t column, int64_t columns,
                          float* panel) const = 0;
  // Completes `columns` numbers of a row of the product by a panel; those of
  // `out` are `step` apart.
  virtual void Finish(float* out, int64_t step, int64_t column,
                      int64_t columns) const = 0;

  int64_t Panels() const { return (desc_.n + columns_ - 1) / columns_; }
  BlockProductDesc Describe(int64_t rows, int64_t columns) const;
  static void RunTasks(void* data, int thread, int threads);
  absl::Status MultiplyPanel(int64_t batch, int64_t column, int thread);

  const std::string name_;
  device::GemmDesc desc_;
  bool few_rows_ = false;
  int64_t columns_ = 1;  // of a task
  // By width (columns_, the rest), then by height (a block, the rest).
  std::vector<BlockProduct> products_;
  int64_t shared_bytes_ = 0;
  int64_t panel_bytes_ = 0, scratch_ = 0;  // per thread
  void* const* buffers_ = nullptr;
  char* scratch_begin_ = nullptr;
  std::atomic<int64_t> next_task_{0};
  std::vector<absl::Status> statuses_;  // by thread
};

}  // namespace partita::cpu

#endif  // PARTITA_RUNTIME_CPU_PANEL_GEMM_H_
