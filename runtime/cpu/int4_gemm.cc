// A few rows are arranged once per run, in the order in which a vector of bytes
// gives weights. Panels hold the weights with their scales.
#include "runtime/cpu/int4_gemm.h"

#include "runtime/base/status_macros.h"
#include "runtime/cpu/nibble_rows.h"
#include "runtime/cpu/panel_gemm.h"

namespace partita::cpu {
namespace {

// Columns of a task: enough to find the next task rarely.
constexpr int64_t kMostFewColumns = 256;

class Int4WeightGemm : public PanelGemm {
 public:
  Int4WeightGemm(const device::GemmDesc& desc, int threads)
      : PanelGemm("own int4", desc, threads) {}

  absl::Status Prepare(const DnnlContext& context) {
    const bool few_rows = desc().batch * desc().m <= kMostFewRows &&
                          (desc().rhs_strides[1] == 1 || desc().k == 1) &&
                          desc().rhs_strides[0] % desc().group == 0 &&
                          CanMultiplyNibbleRows(Few(desc().n));
    return PanelGemm::Prepare(context, few_rows, kMostFewColumns,
                              desc().batch * RowBytes());
  }

 private:
  // Of the rows of one product.
  int64_t RowBytes() const {
    return desc().m * desc().k * static_cast<int64_t>(sizeof(float));
  }
  float* ArrangedRows(int64_t batch) const {
    return reinterpret_cast<float*>(shared_scratch() + batch * RowBytes());
  }
  int64_t PlaceOf(int64_t batch, int64_t column) const {
    return batch * desc().rhs_strides[0] + column * desc().rhs_strides[2];
  }
  NibbleWeights Weights() const {
    return {static_cast<const uint8_t*>(buffer(1)),
            static_cast<const float*>(buffer(2)),
            desc().has_zero ? static_cast<const int8_t*>(buffer(3)) : nullptr,
            desc().group};
  }

  // Sizes and strides alone.
  NibbleRows Few(int64_t columns) const {
    NibbleRows few;
    few.rows = desc().m, few.columns = columns, few.depth = desc().k;
    few.weights.group = desc().group;
    few.column_step = desc().rhs_strides[2];
    few.out_row = desc().out_strides[1];
    few.out_column = desc().out_strides[2];
    return few;
  }

  void Begin() override {
    for (int64_t batch = 0; batch < desc().batch; ++batch)
      for (int64_t row = 0; row < desc().m; ++row)
        ArrangeRow(Lhs(batch) + row * desc().lhs_strides[1],
                   desc().lhs_strides[2], desc().k,
                   ArrangedRows(batch) + row * desc().k);
  }

  void MultiplyFew(int64_t batch, int64_t column, int64_t columns) override {
    NibbleRows few = Few(columns);
    few.lhs = ArrangedRows(batch);
    few.weights = Weights();
    few.first = PlaceOf(batch, column);
    few.out = Out(batch, 0, column);
    few.bias = Bias() == nullptr ? nullptr : Bias() + column;
    MultiplyNibbleRows(few);
  }

  void WidenPanel(int64_t batch, int64_t column, int64_t columns,
                  float* panel) const override {
    const NibbleWeights weights = Weights();
    const int64_t step = desc().rhs_strides[1];
    if (AlongColumns()) {
      for (int64_t k = 0; k < desc().k; ++k)
        Dequantize(weights, PlaceOf(batch, column) + k * step, columns,
                   panel + k * columns);
      return;
    }
    for (int64_t i = 0; i < columns; ++i) {
      const int64_t place = PlaceOf(batch, column + i);
      float* const to = panel + i * desc().k;
      if (step == 1)
        Dequantize(weights, place, desc().k, to);
      else
        for (int64_t k = 0; k < desc().k; ++k)
          Dequantize(weights, place + k * step, 1, to + k);
    }
  }

  void Finish(float* out, int64_t step, int64_t column,
              int64_t columns) const override {
    const float* const bias = Bias();
    if (bias == nullptr) return;
    for (int64_t j = 0; j < columns; ++j) out[j * step] += bias[column + j];
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<CpuOp>> MakeInt4WeightGemm(
    const DnnlContext& context, const device::GemmDesc& desc, int threads) {
  auto op = std::make_unique<Int4WeightGemm>(desc, threads);
  PARTITA_RETURN_IF_ERROR(op->Prepare(context));
  return std::unique_ptr<CpuOp>(std::move(op));
}

}  // namespace partita::cpu
