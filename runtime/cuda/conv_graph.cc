// Describes convolutions to cuDNN and asks for plans.
#include "runtime/cuda/conv_graph.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "runtime/base/status_macros.h"
#include "runtime/program/library_limits.h"

namespace partita::cuda {
namespace {

using device::ConvDesc;
using device::ConvDirection;

DnnDataType TypeOf(base::DType dtype) {
  return dtype == base::DType::kF32   ? kDnnF32
         : dtype == base::DType::kF16 ? kDnnF16
                                      : kDnnBF16;
}

// Reorders a stored shape to [n, c, spatial...].
std::vector<int64_t> ChannelsSecond(std::vector<int64_t> shape,
                                    bool channels_last) {
  if (channels_last)
    std::rotate(shape.begin() + 1, shape.end() - 1, shape.end());
  return shape;
}

// Strides of dense memory, for dimensions [n, c, spatial...].
std::vector<int64_t> StridesOf(const std::vector<int64_t>& dims,
                               bool channels_last) {
  std::vector<int64_t> strides(dims.size(), 1);
  int64_t stride = channels_last ? dims[1] : 1;
  for (size_t d = dims.size(); d-- > 2;) {
    strides[d] = stride;
    stride *= dims[d];
  }
  strides[1] = channels_last ? 1 : stride;
  strides[0] = channels_last ? stride : stride * dims[1];
  return strides;
}

// The compiler counts as much.
int64_t MaxWorkspaceBytes(const ConvDesc& desc) {
  int64_t elements = 0;
  for (const std::vector<int64_t>* shape :
       {&desc.input_shape, &desc.weight_shape, &desc.out_shape})
    elements += std::accumulate(shape->begin(), shape->end(), int64_t{1},
                                std::multiplies<int64_t>());
  return program::ConvolutionWorkspaceBytes(elements *
                                            base::SizeOf(desc.dtype));
}

}  // namespace

ConvDesc AtLeastTwoSpatial(ConvDesc desc) {
  if (desc.strides.size() != 1) return desc;
  const auto insert = [](std::vector<int64_t>& values, size_t at, int64_t one) {
    values.insert(values.begin() + static_cast<std::ptrdiff_t>(at), one);
  };
  const size_t first = desc.channels_last ? 1 : 2;
  insert(desc.input_shape, first, 1);
  insert(desc.out_shape, first, 1);
  insert(desc.weight_shape, 2, 1);
  insert(desc.strides, 0, 1);
  insert(desc.dilations, 0, 1);
  insert(desc.low, 0, 0);
  insert(desc.high, 0, 0);
  return desc;
}

absl::StatusOr<std::unique_ptr<ConvGraph>> ConvGraph::Make(
    const Dnn& dnn, const ConvDesc& desc, const DnnDescriptor* gpu) {
  std::unique_ptr<ConvGraph> graph(new ConvGraph(dnn, desc, gpu));
  PARTITA_RETURN_IF_ERROR(graph->MakeTensors());
  PARTITA_RETURN_IF_ERROR(graph->MakeOperation());
  PARTITA_RETURN_IF_ERROR(graph->MakeGraph());
  return graph;
}

absl::Status ConvGraph::MakeTensor(Role role, const std::vector<int64_t>& dims,
                                   bool channels_last) {
  auto tensor = std::make_unique<DnnDescriptor>(dnn_, kDnnTensor);
  const DnnDataType type = TypeOf(desc_.dtype);
  const int64_t id = static_cast<int64_t>(role) + 1;
  const int64_t alignment = kTensorAlignment;
  tensor->Set(kDnnTensorType, kDnnTypeDataType, &type);
  tensor->Set(kDnnTensorDims, dims);
  tensor->Set(kDnnTensorStrides, StridesOf(dims, channels_last));
  tensor->Set(kDnnTensorId, kDnnTypeInt64, &id);
  tensor->Set(kDnnTensorAlignment, kDnnTypeInt64, &alignment);
  tensors_[role] = std::move(tensor);
  return tensors_[role]->Finalize("describing a tensor");
}

absl::Status ConvGraph::MakeTensors() {
  const bool last = desc_.channels_last;
  PARTITA_RETURN_IF_ERROR(
      MakeTensor(kInput, ChannelsSecond(desc_.input_shape, last), last));
  PARTITA_RETURN_IF_ERROR(MakeTensor(kWeight, desc_.weight_shape, last));
  return MakeTensor(kOutput, ChannelsSecond(desc_.out_shape, last), last);
}

absl::Status ConvGraph::MakeOperation() {
  convolution_ = std::make_unique<DnnDescriptor>(dnn_, kDnnConvolution);
  const DnnDataType compute = kDnnF32;
  const int mode = kDnnCrossCorrelation;
  const int64_t spatial = static_cast<int64_t>(desc_.strides.size());
  convolution_->Set(kDnnComputeType, kDnnTypeDataType, &compute);
  convolution_->Set(kDnnMode, kDnnTypeConvolutionMode, &mode);
  convolution_->Set(kDnnSpatialDims, kDnnTypeInt64, &spatial);
  convolution_->Set(kDnnStrides, desc_.strides);
  convolution_->Set(kDnnDilations, desc_.dilations);
  convolution_->Set(kDnnPaddingBefore, desc_.low);
  convolution_->Set(kDnnPaddingAfter, desc_.high);
  PARTITA_RETURN_IF_ERROR(convolution_->Finalize("describing a convolution"));
  const auto [kind, first] =
      desc_.direction == ConvDirection::kForward
          ? std::pair(kDnnForward, kDnnForwardAlpha)
      : desc_.direction == ConvDirection::kInputGrad
          ? std::pair(kDnnInputGradient, kDnnInputGradientAlpha)
          : std::pair(kDnnWeightGradient, kDnnWeightGradientAlpha);
  const auto attribute = [first = first](int i) {
    return static_cast<DnnAttribute>(first + i);
  };
  const float alpha = 1, beta = 0;
  operation_ = std::make_unique<DnnDescriptor>(dnn_, kind);
  operation_->Set(attribute(0), kDnnTypeFloat, &alpha);
  operation_->Set(attribute(1), kDnnTypeFloat, &beta);
  operation_->Set(attribute(2), *convolution_);
  operation_->Set(attribute(3), *tensors_[kWeight]);
  operation_->Set(attribute(4), *tensors_[kInput]);
  operation_->Set(attribute(5), *tensors_[kOutput]);
  return operation_->Finalize("describing a convolution");
}

absl::Status ConvGraph::MakeGraph() {
  graph_ = std::make_unique<DnnDescriptor>(dnn_, kDnnGraph);
  if (gpu_ == nullptr)
    graph_->Set(kDnnGraphHandle, kDnnTypeHandle, &dnn_.handle);
  graph_->Set(kDnnGraphOperations, *operation_);
  return graph_->Finalize("preparing a convolution");
}

absl::StatusOr<std::vector<DnnPlan>> ConvGraph::Plans() const {
  return FindPlans(dnn_, *graph_, gpu_,
                   {"convolution", desc_.dtype != base::DType::kF32,
                    MaxWorkspaceBytes(desc_)});
}

}  // namespace partita::cuda
