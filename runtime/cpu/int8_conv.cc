// oneDNN multiplies sums by output scales, but its fast implementations need
// them when the primitive is created, and it adds its bias before. So with
// constant scales the bias is divided by them, and the scale and zero point of
// a rounded result join them. Other scales are post-operations.
#include "runtime/cpu/int8_conv.h"

#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "runtime/base/status_macros.h"
#include "runtime/cpu/byte_conv_operands.h"
#include "runtime/cpu/conv.h"
#include "runtime/cpu/widened_conv.h"

namespace partita::cpu {
namespace {

using device::Activation;

// The post-operations of a primitive, and the operands that they read.
class PostOps {
 public:
  absl::Status Create() {
    dnnl_post_ops_t created = nullptr;
    PARTITA_RETURN_IF_ERROR(
        DnnlStatus(Dnnl().post_ops_create(&created), "post-operations"));
    post_ops_.reset(created);
    return absl::OkStatus();
  }

  absl::Status AddBinary(dnnl_alg_kind_t kind, const dnnl_memory_desc_t& desc,
                         int operand, int output = -1) {
    operands_.push_back(
        {DNNL_ARG_ATTR_MULTIPLE_POST_OP(count_++) | DNNL_ARG_SRC_1,
         operand,
         desc,
         {},
         /*output=*/false,
         output});
    return DnnlStatus(
        Dnnl().post_ops_append_binary(post_ops_.get(), kind, &desc),
        "post-operation");
  }
  absl::Status AddElementwise(dnnl_alg_kind_t kind, float alpha, float beta) {
    ++count_;
    return DnnlStatus(Dnnl().post_ops_append_eltwise(post_ops_.get(), 1.0f,
                                                     kind, alpha, beta),
                      "activation");
  }
  absl::Status AddActivation(Activation activation) {
    if (activation != Activation::kNone) ++count_;
    return AppendActivation(post_ops_.get(), activation);
  }

  const_dnnl_post_ops_t get() const { return post_ops_.get(); }
  const std::vector<DnnlOperand>& operands() const { return operands_; }

 private:
  std::unique_ptr<dnnl_post_ops, DnnlDestroy<&DnnlLibrary::post_ops_destroy>>
      post_ops_;
  int count_ = 0;
  std::vector<DnnlOperand> operands_;
};

// Passes the buffers on, with a bias of its own in front of the output.
class Int8Conv : public CpuOp {
 public:
  Int8Conv(std::vector<float> bias, int out)
      : bias_(std::move(bias)), out_(out) {}

  // The number that the primitive's operands give to the own bias.
  int own_bias() const { return out_ + 1; }
  const float* bias() const { return bias_.data(); }
  void set_inner(std::unique_ptr<DnnlOp> inner) { inner_ = std::move(inner); }

  int64_t scratch_bytes() const override { return inner_->scratch_bytes(); }
  bool Packed(int index) const override { return inner_->Packed(index); }
  std::string Description() const override { return inner_->Description(); }

  absl::Status Run(void* const* buffers, char* scratch) override {
    std::array<void*, kMostOperands + 1> all = {};
    for (int i = 0; i <= out_; ++i) all[static_cast<size_t>(i)] = buffers[i];
    all[static_cast<size_t>(own_bias())] = bias_.data();
    return inner_->Run(all.data(), scratch);
  }

 private:
  static constexpr size_t kMostOperands = 9;

  std::vector<float> bias_;
  const int out_;
  std::unique_ptr<DnnlOp> inner_;
};

// What a primitive with constant scales computes:
// post(scale[o] * (sum + bias[o])), then saturation.
struct Folded {
  std::vector<float> scale, bias;  // of each output channel
  int32_t zero = 0;                // of the input
  Activation activation = Activation::kNone;
  float factor = 1, shift = 0;  // after the activation
};

float FloatAt(const void* data, size_t i) {
  return static_cast<const float*>(data)[i];
}

// False if a bias cannot be divided by its scale.
bool Fold(const device::ConvDesc& desc, const ByteConvOperands& places,
          const std::vector<const void*>& constants, Folded& folded) {
  const auto at = [&](int place) {
    return constants[static_cast<size_t>(place)];
  };
  if (desc.has_zero) std::memcpy(&folded.zero, at(places.zero), 4);
  folded.activation = desc.activation;
  double factor = 1, shift = 0;
  if (desc.rounds()) {
    int32_t zero = 0;
    std::memcpy(&zero, at(places.result_zero), 4);
    factor = 1 / static_cast<double>(FloatAt(at(places.result_scale), 0));
    const int32_t least = desc.dtype == base::DType::kU8 ? 0 : -128;
    // Saturation is the activation, if zero is the least integer.
    if (folded.activation == Activation::kRelu && zero == least && factor > 0)
      folded.activation = Activation::kNone;
    shift = zero;
  }
  const bool is_linear =
      folded.activation == Activation::kNone && !desc.has_residual;
  if (!is_linear) {
    folded.factor = static_cast<float>(factor);
    folded.shift = static_cast<float>(shift);
    factor = 1, shift = 0;
  }
  for (size_t o = 0; o < static_cast<size_t>(desc.weight_shape[0]); ++o) {
    const double scale =
        static_cast<double>(FloatAt(at(places.scale), o)) * factor;
    const double added =
        shift + (desc.has_bias
                     ? static_cast<double>(FloatAt(at(places.bias), o)) * factor
                     : 0.0);
    folded.scale.push_back(static_cast<float>(scale));
    folded.bias.push_back(added == 0 ? 0.0f
                                     : static_cast<float>(added / scale));
    if (!std::isfinite(folded.bias.back())) return false;
  }
  return true;
}

absl::StatusOr<dnnl_memory_desc_t> ChannelsDesc(const device::ConvDesc& desc,
                                                base::DType dtype,
                                                int64_t channels) {
  std::vector<int64_t> dims(desc.out_shape.size(), 1);
  dims[1] = channels;
  return MakeMemoryDesc(dtype, dims);
}

// The residual, before or behind the activation.
absl::Status AddActivationAndResidual(const device::ConvDesc& desc,
                                      const ConvLayouts& layouts,
                                      Activation activation,
                                      const ByteConvOperands& places,
                                      PostOps& post_ops) {
  if (!desc.activates_sum)
    PARTITA_RETURN_IF_ERROR(post_ops.AddActivation(activation));
  if (desc.has_residual)
    PARTITA_RETURN_IF_ERROR(post_ops.AddBinary(dnnl_binary_add, layouts.out,
                                               places.residual, places.out));
  if (desc.activates_sum)
    PARTITA_RETURN_IF_ERROR(post_ops.AddActivation(activation));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<DnnlOp>> Create(
    DnnlContext& context, const device::ConvDesc& desc,
    const ConvLayouts& layouts, const Constant& weight,
    const ByteConvOperands& places, const_dnnl_primitive_attr_t attr,
    const PostOps& post_ops, int own_bias) {
  dnnl_convolution_desc_t convolution;
  PARTITA_RETURN_IF_ERROR(
      DnnlStatus(Dnnl().dilated_convolution_forward_desc_init(
                     &convolution, dnnl_forward_inference,
                     dnnl_convolution_auto, &layouts.input, &layouts.any_weight,
                     own_bias >= 0 ? &layouts.bias : nullptr, &layouts.out,
                     desc.strides.data(), layouts.holes.data(), desc.low.data(),
                     desc.high.data()),
                 "convolution of integers"));
  PARTITA_ASSIGN_OR_RETURN(
      DnnlPrimitiveDesc primitive,
      MakePrimitiveDesc(&convolution, attr, context.engine.get()));
  std::vector<DnnlOperand> operands = {
      {DNNL_ARG_SRC, 0, layouts.input, {}},
      {DNNL_ARG_WEIGHTS, 1, layouts.weight, weight}};
  if (own_bias >= 0)
    operands.push_back({DNNL_ARG_BIAS, own_bias, layouts.bias, {}});
  operands.insert(operands.end(), post_ops.operands().begin(),
                  post_ops.operands().end());
  operands.push_back(
      {DNNL_ARG_DST, places.out, layouts.out, {}, /*output=*/true});
  if (desc.has_zero && own_bias < 0) {
    PARTITA_ASSIGN_OR_RETURN(const dnnl_memory_desc_t zero,
                             MakeMemoryDesc(base::DType::kI32, {1}));
    operands.push_back(
        {DNNL_ARG_ATTR_ZERO_POINTS | DNNL_ARG_SRC, places.zero, zero, {}});
  }
  return DnnlOp::Create(context, std::move(primitive), operands);
}

absl::StatusOr<DnnlAttr> MakePlainAttr() {
  dnnl_primitive_attr_t handle = nullptr;
  PARTITA_RETURN_IF_ERROR(
      DnnlStatus(Dnnl().primitive_attr_create(&handle), "attributes"));
  DnnlAttr attr(handle);
  PARTITA_RETURN_IF_ERROR(DnnlStatus(Dnnl().primitive_attr_set_scratchpad_mode(
                                         handle, dnnl_scratchpad_mode_user),
                                     "scratchpad mode"));
  return attr;
}

absl::StatusOr<std::unique_ptr<CpuOp>> MakeFolded(
    DnnlContext& context, const device::ConvDesc& desc,
    const ConvLayouts& layouts, const Constant& weight,
    const ByteConvOperands& places, Folded folded) {
  PARTITA_ASSIGN_OR_RETURN(const DnnlAttr attr, MakePlainAttr());
  constexpr int kByChannel = 1 << 1;
  PARTITA_RETURN_IF_ERROR(
      DnnlStatus(Dnnl().primitive_attr_set_output_scales(
                     attr.get(), static_cast<int64_t>(folded.scale.size()),
                     kByChannel, folded.scale.data()),
                 "scales"));
  if (folded.zero != 0)
    PARTITA_RETURN_IF_ERROR(DnnlStatus(
        Dnnl().primitive_attr_set_zero_points(attr.get(), DNNL_ARG_SRC, 1,
                                              /*mask=*/0, &folded.zero),
        "zero point"));
  PostOps post_ops;
  PARTITA_RETURN_IF_ERROR(post_ops.Create());
  PARTITA_RETURN_IF_ERROR(AddActivationAndResidual(
      desc, layouts, folded.activation, places, post_ops));
  if (folded.factor != 1 || folded.shift != 0)
    PARTITA_RETURN_IF_ERROR(post_ops.AddElementwise(
        dnnl_eltwise_linear, folded.factor, folded.shift));
  PARTITA_RETURN_IF_ERROR(
      DnnlStatus(Dnnl().primitive_attr_set_post_ops(attr.get(), post_ops.get()),
                 "post-operations"));
  auto op = std::make_unique<Int8Conv>(std::move(folded.bias), places.out);
  PARTITA_ASSIGN_OR_RETURN(std::unique_ptr<DnnlOp> inner,
                           Create(context, desc, layouts, weight, places,
                                  attr.get(), post_ops, op->own_bias()));
  op->set_inner(std::move(inner));
  return std::unique_ptr<CpuOp>(std::move(op));
}

absl::StatusOr<std::unique_ptr<CpuOp>> MakeByPostOps(
    DnnlContext& context, const device::ConvDesc& desc,
    const ConvLayouts& layouts, const Constant& weight,
    const ByteConvOperands& places) {
  PARTITA_ASSIGN_OR_RETURN(const DnnlAttr attr, MakePlainAttr());
  if (desc.has_zero) {
    const int32_t at_run_time = DNNL_RUNTIME_S32_VAL;
    PARTITA_RETURN_IF_ERROR(DnnlStatus(
        Dnnl().primitive_attr_set_zero_points(attr.get(), DNNL_ARG_SRC, 1,
                                              /*mask=*/0, &at_run_time),
        "zero point"));
  }
  PARTITA_ASSIGN_OR_RETURN(
      const dnnl_memory_desc_t channels,
      ChannelsDesc(desc, base::DType::kF32, desc.weight_shape[0]));
  PARTITA_ASSIGN_OR_RETURN(const dnnl_memory_desc_t one_float,
                           ChannelsDesc(desc, base::DType::kF32, 1));
  PARTITA_ASSIGN_OR_RETURN(const dnnl_memory_desc_t one_integer,
                           ChannelsDesc(desc, base::DType::kI32, 1));
  PostOps post_ops;
  PARTITA_RETURN_IF_ERROR(post_ops.Create());
  PARTITA_RETURN_IF_ERROR(
      post_ops.AddBinary(dnnl_binary_mul, channels, places.scale));
  if (desc.has_bias)
    PARTITA_RETURN_IF_ERROR(
        post_ops.AddBinary(dnnl_binary_add, channels, places.bias));
  PARTITA_RETURN_IF_ERROR(AddActivationAndResidual(
      desc, layouts, desc.activation, places, post_ops));
  if (desc.rounds()) {
    PARTITA_RETURN_IF_ERROR(
        post_ops.AddBinary(dnnl_binary_div, one_float, places.result_scale));
    PARTITA_RETURN_IF_ERROR(
        post_ops.AddBinary(dnnl_binary_add, one_integer, places.result_zero));
  }
  PARTITA_RETURN_IF_ERROR(
      DnnlStatus(Dnnl().primitive_attr_set_post_ops(attr.get(), post_ops.get()),
                 "post-operations"));
  PARTITA_ASSIGN_OR_RETURN(
      std::unique_ptr<DnnlOp> op,
      Create(context, desc, layouts, weight, places, attr.get(), post_ops,
             /*own_bias=*/-1));
  return std::unique_ptr<CpuOp>(std::move(op));
}

}  // namespace

absl::StatusOr<std::unique_ptr<CpuOp>> MakeInt8Conv(
    DnnlContext& context, const device::ConvDesc& original,
    const std::vector<const void*>& constants) {
  if (!MultipliesBytesExactly())
    return MakeWidenedConv(context, original, constants);
  const device::ConvDesc desc = Simplified(original);
  PARTITA_ASSIGN_OR_RETURN(const ConvLayouts layouts, LayoutsOf(desc));
  const ByteConvOperands places(desc);
  const Constant weight = {constants[1], constants[1]};
  Folded folded;
  if (places.AreConstant(constants) && Fold(desc, places, constants, folded))
    return MakeFolded(context, desc, layouts, weight, places,
                      std::move(folded));
  return MakeByPostOps(context, desc, layouts, weight, places);
}

}  // namespace partita::cpu
