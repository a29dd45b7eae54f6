// Convolution and its gradients as oneDNN primitives. Activations keep the
// program's layout; oneDNN chooses the weight's layout.
#include "runtime/cpu/conv.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

#include "runtime/base/status_macros.h"

namespace partita::cpu {
namespace {

// oneDNN's logical order is always N, C, spatial. Channels last differs in
// strides only.
absl::StatusOr<dnnl_memory_desc_t> ActivationDesc(
    base::DType dtype, const std::vector<int64_t>& shape, bool channels_last) {
  if (!channels_last) return MakeMemoryDesc(dtype, shape);
  std::vector<int64_t> row_major(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;)
    row_major[i - 1] = row_major[i] * shape[i];
  std::vector<int64_t> dims = {shape.front(), shape.back()};
  std::vector<int64_t> strides = {row_major.front(), row_major.back()};
  dims.insert(dims.end(), shape.begin() + 1, shape.end() - 1);
  strides.insert(strides.end(), row_major.begin() + 1, row_major.end() - 1);
  return MakeMemoryDesc(dtype, dims, strides);
}

// [O, C / groups, kernel...]; with several groups [groups, O / groups, C /
// groups, kernel...].
std::vector<int64_t> WeightDims(const device::ConvDesc& desc) {
  if (desc.groups == 1) return desc.weight_shape;
  std::vector<int64_t> dims = {desc.groups, desc.weight_shape[0] / desc.groups};
  dims.insert(dims.end(), desc.weight_shape.begin() + 1,
              desc.weight_shape.end());
  return dims;
}

base::DType WeightType(const device::ConvDesc& desc) {
  return desc.has_bytes() ? base::DType::kI8 : desc.dtype;
}

base::DType InputType(const device::ConvDesc& desc) {
  return desc.factors == device::Factors::kU8I8 ? base::DType::kU8
                                                : WeightType(desc);
}

}  // namespace

device::ConvDesc Simplified(device::ConvDesc desc) {
  if (!desc.channels_last || desc.input_shape.back() != 1 ||
      desc.out_shape.back() != 1)
    return desc;
  desc.channels_last = false;
  for (std::vector<int64_t>* shape : {&desc.input_shape, &desc.out_shape}) {
    shape->pop_back();
    shape->insert(shape->begin() + 1, 1);
  }
  return desc;
}

// True if the results of a pixel depend on that pixel alone and lie where it
// lies: one image with all pixels of the batch is the same convolution.
bool IsPointwise(const device::ConvDesc& desc) {
  const auto all = [](const std::vector<int64_t>& sizes, int64_t expected) {
    return std::all_of(sizes.begin(), sizes.end(),
                       [&](int64_t size) { return size == expected; });
  };
  return desc.direction == device::ConvDirection::kForward &&
         desc.channels_last && desc.groups == 1 && all(desc.strides, 1) &&
         all(desc.low, 0) && all(desc.high, 0) &&
         std::all_of(desc.weight_shape.begin() + 2, desc.weight_shape.end(),
                     [](int64_t size) { return size == 1; });
}

// oneDNN computes image by image, and reads all weights for each: small images
// are joined. On AVX-512 with one thread, 8 images: 1 x 1, 960 to 1280: 0.21 ms
// instead of 1.62; 1 x 1, 240 to 960: 0.02 instead of 0.06; 7 x 7, 512 to 2048:
// 5.0 instead of 5.5, but 160 to 960: 0.73 instead of 0.71.
constexpr int64_t kSmallPixels = 16, kMostPixels = 64;
constexpr int64_t kManyWeights = 1 << 18;
device::ConvDesc WithJoinedImages(device::ConvDesc desc) {
  const int64_t pixels =
      std::accumulate(desc.input_shape.begin() + 1, desc.input_shape.end() - 1,
                      int64_t{1}, std::multiplies<>());
  const int64_t most =
      desc.weight_shape[0] * desc.weight_shape[1] < kManyWeights ? kSmallPixels
                                                                 : kMostPixels;
  if (desc.input_shape[0] <= 1 || pixels > most || !IsPointwise(desc))
    return desc;
  for (std::vector<int64_t>* shape : {&desc.input_shape, &desc.out_shape}) {
    const int64_t images = shape->front();
    std::fill(shape->begin(), shape->end() - 1, 1);
    *(shape->end() - 2) = images * pixels;
  }
  return desc;
}

absl::StatusOr<ConvLayouts> LayoutsOf(const device::ConvDesc& desc) {
  ConvLayouts described;
  PARTITA_ASSIGN_OR_RETURN(
      described.input,
      ActivationDesc(InputType(desc), desc.input_shape, desc.channels_last));
  PARTITA_ASSIGN_OR_RETURN(
      described.out,
      ActivationDesc(desc.dtype, desc.out_shape, desc.channels_last));
  PARTITA_ASSIGN_OR_RETURN(described.weight,
                           MakeMemoryDesc(WeightType(desc), WeightDims(desc)));
  PARTITA_ASSIGN_OR_RETURN(
      described.any_weight,
      MakeAnyMemoryDesc(WeightType(desc), WeightDims(desc)));
  PARTITA_ASSIGN_OR_RETURN(
      described.bias,
      MakeMemoryDesc(desc.has_bytes() ? base::DType::kF32 : desc.dtype,
                     {desc.weight_shape[0]}));
  described.holes = desc.dilations;
  for (int64_t& hole : described.holes) --hole;
  return described;
}

namespace {

absl::StatusOr<DnnlPrimitiveDesc> MakeForward(DnnlContext& context,
                                              const device::ConvDesc& desc,
                                              const ConvLayouts& described,
                                              dnnl_prop_kind_t kind,
                                              bool sums = false) {
  PARTITA_ASSIGN_OR_RETURN(
      const DnnlAttr attr,
      MakeAttr(desc.activation, desc.has_residual ? &described.out : nullptr,
               sums, /*scale=*/nullptr, /*shift=*/nullptr, desc.activates_sum));
  dnnl_convolution_desc_t convolution;
  PARTITA_RETURN_IF_ERROR(DnnlStatus(
      Dnnl().dilated_convolution_forward_desc_init(
          &convolution, kind, dnnl_convolution_auto, &described.input,
          &described.any_weight, desc.has_bias ? &described.bias : nullptr,
          &described.out, desc.strides.data(), described.holes.data(),
          desc.low.data(), desc.high.data()),
      "convolution"));
  return MakePrimitiveDesc(&convolution, attr.get(), context.engine.get());
}

// True if the primitive adds a residual wrongly. oneDNN 2.6's gemm convolutions
// with several groups read the binary post-operation's operand of the first
// group for every group. A sum post-operation is correct, but after an
// activation oneDNN only has its slow reference implementation for it.
bool AddsResidualWrongly(const device::ConvDesc& desc,
                         const_dnnl_primitive_desc_t primitive) {
  const char* description = nullptr;
  return desc.groups > 1 &&
         Dnnl().primitive_desc_query(primitive, dnnl_query_impl_info_str, 0,
                                     &description) == dnnl_success &&
         std::strstr(description, "gemm") != nullptr;
}

absl::StatusOr<DnnlPrimitiveDesc> MakeBackward(DnnlContext& context,
                                               const device::ConvDesc& desc,
                                               const ConvLayouts& described) {
  PARTITA_ASSIGN_OR_RETURN(
      const DnnlPrimitiveDesc forward,
      MakeForward(context, desc, described, dnnl_forward_training));
  PARTITA_ASSIGN_OR_RETURN(const DnnlAttr attr,
                           MakeAttr(device::Activation::kNone, nullptr));
  dnnl_convolution_desc_t convolution;
  const dnnl_status_t status =
      desc.direction == device::ConvDirection::kInputGrad
          ? Dnnl().dilated_convolution_backward_data_desc_init(
                &convolution, dnnl_convolution_auto, &described.input,
                &described.any_weight, &described.out, desc.strides.data(),
                described.holes.data(), desc.low.data(), desc.high.data())
          : Dnnl().dilated_convolution_backward_weights_desc_init(
                &convolution, dnnl_convolution_auto, &described.input,
                &described.any_weight, nullptr, &described.out,
                desc.strides.data(), described.holes.data(), desc.low.data(),
                desc.high.data());
  PARTITA_RETURN_IF_ERROR(DnnlStatus(status, "convolution's gradient"));
  return MakePrimitiveDesc(&convolution, attr.get(), context.engine.get(),
                           forward.get());
}

std::vector<DnnlOperand> OperandsOf(const device::ConvDesc& desc,
                                    const ConvLayouts& described,
                                    const Constant& weight, bool sums) {
  switch (desc.direction) {
    case device::ConvDirection::kInputGrad:
      return {{DNNL_ARG_DIFF_DST, 0, described.out, {}},
              {DNNL_ARG_WEIGHTS, 1, described.weight, weight},
              {DNNL_ARG_DIFF_SRC, 2, described.input, {}, /*output=*/true}};
    case device::ConvDirection::kWeightGrad:
      return {
          {DNNL_ARG_SRC, 0, described.input, {}},
          {DNNL_ARG_DIFF_DST, 1, described.out, {}},
          {DNNL_ARG_DIFF_WEIGHTS, 2, described.weight, {}, /*output=*/true}};
    case device::ConvDirection::kForward:
      break;
  }
  std::vector<DnnlOperand> operands = {
      {DNNL_ARG_SRC, 0, described.input, {}},
      {DNNL_ARG_WEIGHTS, 1, described.weight, weight}};
  int index = 2;
  if (desc.has_bias)
    operands.push_back({DNNL_ARG_BIAS, index++, described.bias, {}});
  if (desc.has_residual) {
    operands.push_back(
        {sums ? kSummed : ResidualArgument(desc.activation, desc.activates_sum),
         index,
         described.out,
         {}});
    operands.back().output_index = ++index;
  }
  operands.push_back({DNNL_ARG_DST, index, described.out, {}, /*output=*/true});
  return operands;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CpuOp>> MakeConv(
    DnnlContext& context, const device::ConvDesc& original,
    const Constant& weight) {
  const device::ConvDesc desc = Simplified(WithJoinedImages(original));
  PARTITA_ASSIGN_OR_RETURN(const ConvLayouts described, LayoutsOf(desc));
  PARTITA_ASSIGN_OR_RETURN(
      DnnlPrimitiveDesc primitive,
      desc.direction == device::ConvDirection::kForward
          ? MakeForward(context, desc, described, dnnl_forward_inference)
          : MakeBackward(context, desc, described));
  // With a sum, oneDNN 2.6 keeps the implementation that it has without a
  // residual. On AVX-512, batch 8: 56 x 56, 1x1, 64 to 256: 6.8 ms, 10.0 ms
  // from other memory, 6.3 ms without; 7 x 7, 1x1, 512 to 2048: 5.9, 9.3, 5.8.
  const bool sums =
      desc.has_residual &&
      (desc.residual_in_out || AddsResidualWrongly(desc, primitive.get()));
  if (sums) {
    PARTITA_ASSIGN_OR_RETURN(
        primitive,
        MakeForward(context, desc, described, dnnl_forward_inference, sums));
  }
  PARTITA_ASSIGN_OR_RETURN(
      std::unique_ptr<DnnlOp> op,
      DnnlOp::Create(context, std::move(primitive),
                     OperandsOf(desc, described, weight, sums)));
  return std::unique_ptr<CpuOp>(std::move(op));
}

}  // namespace partita::cpu
