// Weights of 8 bits; a column's scale multiplies its sum.
#include "runtime/cpu/int8_gemm.h"

#include "runtime/base/status_macros.h"
#include "runtime/cpu/panel_gemm.h"
#include "runtime/cpu/widen_rows.h"

namespace partita::cpu {
namespace {

class Int8WeightGemm : public PanelGemm {
 public:
  Int8WeightGemm(const device::GemmDesc& desc, int threads)
      : PanelGemm("own int8", desc, threads) {}

  absl::Status Prepare(const DnnlContext& context) {
    return PanelGemm::Prepare(
        context, desc().m <= kMostFewRows && CanMultiplyFewRows(Few(desc().n)),
        kMostColumns, /*shared_bytes=*/0);
  }

 private:
  const int8_t* Weights(int64_t batch, int64_t column) const {
    return static_cast<const int8_t*>(buffer(1)) +
           batch * desc().rhs_strides[0] + column * desc().rhs_strides[2];
  }
  const float* Scale() const { return static_cast<const float*>(buffer(2)); }

  // Sizes and strides alone.
  FewRows Few(int64_t columns) const {
    FewRows few;
    few.rows = desc().m, few.columns = columns, few.depth = desc().k;
    few.lhs_row = desc().lhs_strides[1], few.lhs_depth = desc().lhs_strides[2];
    few.weight_depth = desc().rhs_strides[1];
    few.weight_column = desc().rhs_strides[2];
    few.out_row = desc().out_strides[1];
    few.out_column = desc().out_strides[2];
    return few;
  }

  void MultiplyFew(int64_t batch, int64_t column, int64_t columns) override {
    FewRows few = Few(columns);
    few.lhs = Lhs(batch);
    few.weights = Weights(batch, column);
    few.out = Out(batch, 0, column);
    few.scale = Scale() + column;
    few.bias = Bias() == nullptr ? nullptr : Bias() + column;
    MultiplyFewRows(few);
  }

  void WidenPanel(int64_t batch, int64_t column, int64_t columns,
                  float* panel) const override {
    const int64_t step = desc().rhs_strides[1];
    if (AlongColumns()) {
      for (int64_t k = 0; k < desc().k; ++k)
        Widen(Weights(batch, column) + k * step, columns, panel + k * columns);
      return;
    }
    for (int64_t i = 0; i < columns; ++i) {
      const int8_t* const from = Weights(batch, column + i);
      float* const to = panel + i * desc().k;
      if (step == 1)
        Widen(from, desc().k, to);
      else
        for (int64_t k = 0; k < desc().k; ++k) to[k] = from[k * step];
    }
  }

  // out = scale * out + bias
  void Finish(float* out, int64_t step, int64_t column,
              int64_t columns) const override {
    const float* const scale = Scale() + column;
    const float* const bias = Bias();
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
};

}  // namespace

absl::StatusOr<std::unique_ptr<CpuOp>> MakeInt8WeightGemm(
    const DnnlContext& context, const device::GemmDesc& desc, int threads) {
  auto op = std::make_unique<Int8WeightGemm>(desc, threads);
  PARTITA_RETURN_IF_ERROR(op->Prepare(context));
  return std::unique_ptr<CpuOp>(std::move(op));
}

}  // namespace partita::cpu
