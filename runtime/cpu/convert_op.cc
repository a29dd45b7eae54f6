// Inputs keep their strides, so each converts as one contiguous range. The
// result is written element by element where it has gaps, which may hold other
// data.
#include "runtime/cpu/convert_op.h"

#include <string>
#include <utility>
#include <vector>

#include "runtime/base/dtype.h"
#include "runtime/base/status_macros.h"
#include "runtime/cpu/conv.h"
#include "runtime/cpu/gemm.h"

namespace partita::cpu {
namespace {

// The layout of an operand in its buffer.
struct Layout {
  std::vector<int64_t> dims;
  std::vector<int64_t> strides;

  // Number of elements from the first to the last, gaps included.
  int64_t Span() const {
    int64_t span = 1;
    for (size_t i = 0; i < dims.size(); ++i) span += (dims[i] - 1) * strides[i];
    return span;
  }
};

Layout DenseLayout(const std::vector<int64_t>& dims) {
  return {{*base::ElementCount(dims)}, {1}};
}

void ConvertBack(const Layout& layout, size_t dim, const float* source,
                 base::DType dtype, char* target) {
  const int64_t size = base::SizeOf(dtype);
  const int64_t stride = layout.strides[dim];
  if (dim + 1 == layout.dims.size() && stride == 1) {
    base::Convert(base::DType::kF32, source, dtype, target, layout.dims[dim]);
    return;
  }
  for (int64_t i = 0; i < layout.dims[dim]; ++i) {
    if (dim + 1 == layout.dims.size()) {
      base::Convert(base::DType::kF32, source + i * stride, dtype,
                    target + i * stride * size, 1);
    } else {
      ConvertBack(layout, dim + 1, source + i * stride, dtype,
                  target + i * stride * size);
    }
  }
}

class ConvertOp : public CpuOp {
 public:
  // `layouts` lists all operands, the result last.
  ConvertOp(base::DType dtype, std::vector<Layout> layouts,
            std::unique_ptr<CpuOp> inner)
      : dtype_(dtype),
        layouts_(std::move(layouts)),
        inner_(std::move(inner)),
        buffers_(layouts_.size()) {
    scratch_bytes_ = AlignUp(inner_->scratch_bytes());
    for (size_t i = 0; i < layouts_.size(); ++i) {
      offsets_.push_back(scratch_bytes_);
      if (!Packed(static_cast<int>(i)))
        scratch_bytes_ += AlignUp(layouts_[i].Span() * 4);
    }
  }

  int64_t scratch_bytes() const override { return scratch_bytes_; }
  bool Packed(int index) const override { return inner_->Packed(index); }
  std::string Description() const override {
    return inner_->Description() + "+convert";
  }

  absl::Status Run(void* const* buffers, char* scratch) override {
    const size_t last = layouts_.size() - 1;
    for (size_t i = 0; i <= last; ++i) {
      buffers_[i] = scratch + offsets_[i];
      if (i == last || Packed(static_cast<int>(i))) continue;
      base::Convert(dtype_, buffers[i], base::DType::kF32, buffers_[i],
                    layouts_[i].Span());
    }
    PARTITA_RETURN_IF_ERROR(inner_->Run(buffers_.data(), scratch));
    ConvertBack(layouts_[last], 0, static_cast<const float*>(buffers_[last]),
                dtype_, static_cast<char*>(buffers[last]));
    return absl::OkStatus();
  }

 private:
  const base::DType dtype_;
  const std::vector<Layout> layouts_;
  const std::unique_ptr<CpuOp> inner_;
  std::vector<void*> buffers_;
  std::vector<int64_t> offsets_;
  int64_t scratch_bytes_ = 0;
};

// The constant converted to f32 in `storage`, which must outlive its use.
Constant ConvertConstant(base::DType dtype, const Layout& layout,
                         const void* constant, std::vector<float>& storage) {
  if (constant == nullptr) return {};
  storage.resize(static_cast<size_t>(layout.Span()));
  base::Convert(dtype, constant, base::DType::kF32, storage.data(),
                layout.Span());
  return {constant, storage.data()};
}

}  // namespace

absl::StatusOr<std::unique_ptr<CpuOp>> MakeConvertedGemm(
    DnnlContext& context, const device::GemmDesc& desc,
    const void* constant_rhs) {
  const auto layout = [](int64_t a, int64_t b, int64_t c,
                         const std::array<int64_t, 3>& strides) -> Layout {
    return {{a, b, c}, {strides[0], strides[1], strides[2]}};
  };
  const Layout out = layout(desc.batch, desc.m, desc.n, desc.out_strides);
  std::vector<Layout> layouts = {
      layout(desc.batch, desc.m, desc.k, desc.lhs_strides),
      layout(desc.batch, desc.k, desc.n, desc.rhs_strides)};
  if (desc.has_bias) layouts.push_back(DenseLayout({desc.n}));
  if (desc.has_residual) layouts.push_back(out);
  layouts.push_back(out);
  device::GemmDesc wide = desc;
  wide.dtype = base::DType::kF32;
  std::vector<float> storage;
  const Constant rhs =
      ConvertConstant(desc.dtype, layouts[1], constant_rhs, storage);
  PARTITA_ASSIGN_OR_RETURN(std::unique_ptr<CpuOp> inner,
                           MakeGemm(context, wide, rhs));
  return std::unique_ptr<CpuOp>(std::make_unique<ConvertOp>(
      desc.dtype, std::move(layouts), std::move(inner)));
}

absl::StatusOr<std::unique_ptr<CpuOp>> MakeConvertedConv(
    DnnlContext& context, const device::ConvDesc& desc,
    const void* constant_weight) {
  const Layout input = DenseLayout(desc.input_shape),
               weights = DenseLayout(desc.weight_shape),
               out = DenseLayout(desc.out_shape);
  std::vector<Layout> layouts = {input, weights};
  if (desc.has_bias) layouts.push_back(DenseLayout({desc.weight_shape[0]}));
  if (desc.has_residual) layouts.push_back(out);
  layouts.push_back(out);
  if (desc.direction == device::ConvDirection::kInputGrad)
    layouts = {out, weights, input};
  if (desc.direction == device::ConvDirection::kWeightGrad)
    layouts = {input, out, weights};
  device::ConvDesc wide = desc;
  wide.dtype = base::DType::kF32;
  wide.residual_in_out = false;  // they are converted to different memory
  std::vector<float> storage;
  const Constant weight =
      ConvertConstant(desc.dtype, layouts[1], constant_weight, storage);
  PARTITA_ASSIGN_OR_RETURN(std::unique_ptr<CpuOp> inner,
                           MakeConv(context, wide, weight));
  return std::unique_ptr<CpuOp>(std::make_unique<ConvertOp>(
      desc.dtype, std::move(layouts), std::move(inner)));
}

}  // namespace partita::cpu
