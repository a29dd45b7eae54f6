// Convolution as a oneDNN primitive. Activations stay as the program laid them
// out; weights take any layout.
#include "runtime/cpu/conv.h"

#include <utility>
#include <vector>

#include "runtime/base/status_macros.h"

namespace partita::cpu {
namespace {

// oneDNN's logical order is always N, C, spatial; channels last is a matter of
// strides.
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

// [O, C / groups, kernel...], or with groups [groups, O / groups, C / groups,
// kernel...].
std::vector<int64_t> WeightDims(const device::ConvDesc& desc) {
  if (desc.groups == 1) return desc.weight_shape;
  std::vector<int64_t> dims = {desc.groups, desc.weight_shape[0] / desc.groups};
  dims.insert(dims.end(), desc.weight_shape.begin() + 1,
              desc.weight_shape.end());
  return dims;
}

// With one channel on both sides the layouts are one, but oneDNN 2.6 computes
// wrong results from the strides of the one that has the channels last.
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

}  // namespace

absl::StatusOr<std::unique_ptr<CpuOp>> MakeConv(
    DnnlContext& context, const device::ConvDesc& original,
    const Constant& weight) {
  const device::ConvDesc desc = Simplified(original);
  PARTITA_ASSIGN_OR_RETURN(
      const dnnl_memory_desc_t input_desc,
      ActivationDesc(desc.dtype, desc.input_shape, desc.channels_last));
  PARTITA_ASSIGN_OR_RETURN(
      const dnnl_memory_desc_t out_desc,
      ActivationDesc(desc.dtype, desc.out_shape, desc.channels_last));
  PARTITA_ASSIGN_OR_RETURN(const dnnl_memory_desc_t weight_desc,
                           MakeMemoryDesc(desc.dtype, WeightDims(desc)));
  PARTITA_ASSIGN_OR_RETURN(const dnnl_memory_desc_t any_weight,
                           MakeAnyMemoryDesc(desc.dtype, WeightDims(desc)));
  PARTITA_ASSIGN_OR_RETURN(const dnnl_memory_desc_t bias_desc,
                           MakeMemoryDesc(desc.dtype, {desc.weight_shape[0]}));
  PARTITA_ASSIGN_OR_RETURN(
      const DnnlAttr attr,
      MakeAttr(desc.activation, desc.has_residual ? &out_desc : nullptr));
  // oneDNN counts the holes between the kernel's elements.
  std::vector<int64_t> holes = desc.dilations;
  for (int64_t& hole : holes) --hole;
  dnnl_convolution_desc_t convolution;
  PARTITA_RETURN_IF_ERROR(DnnlStatus(
      dnnl_dilated_convolution_forward_desc_init(
          &convolution, dnnl_forward_inference, dnnl_convolution_auto,
          &input_desc, &any_weight, desc.has_bias ? &bias_desc : nullptr,
          &out_desc, desc.strides.data(), holes.data(), desc.low.data(),
          desc.high.data()),
      "convolution"));
  PARTITA_ASSIGN_OR_RETURN(
      DnnlPrimitiveDesc primitive,
      MakePrimitiveDesc(&convolution, attr.get(), context.engine.get()));

  std::vector<DnnlOperand> operands = {
      {DNNL_ARG_SRC, 0, input_desc, {}},
      {DNNL_ARG_WEIGHTS, 1, weight_desc, weight}};
  int index = 2;
  if (desc.has_bias)
    operands.push_back({DNNL_ARG_BIAS, index++, bias_desc, {}});
  if (desc.has_residual)
    operands.push_back(
        {ResidualArgument(desc.activation), index++, out_desc, {}});
  operands.push_back({DNNL_ARG_DST, index, out_desc, {}, /*output=*/true});
  PARTITA_ASSIGN_OR_RETURN(
      std::unique_ptr<DnnlOp> op,
      DnnlOp::Create(context, std::move(primitive), operands));
  return std::unique_ptr<CpuOp>(std::move(op));
}

}  // namespace partita::cpu
