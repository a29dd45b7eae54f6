// The graph is softmax(scale * q k^T, masked) v, as cuDNN's documentation
// describes fused attention: the library recognizes this order of operations.
#include "runtime/cuda/attention_graph.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/program/library_limits.h"

namespace partita::cuda {
namespace {

using device::AttentionDesc;

// Earlier versions hide keys by another value than minus infinity.
constexpr size_t kFirstVersion = 91000;
constexpr int64_t kElementBytes = 2;
constexpr char kDoing[] = "describing an attention";

DnnDataType TypeOf(const AttentionDesc& desc) {
  return desc.dtype == base::DType::kF16 ? kDnnF16 : kDnnBF16;
}

std::vector<int64_t> DenseStrides(const std::vector<int64_t>& dims) {
  std::vector<int64_t> strides(dims.size(), 1);
  for (size_t d = dims.size() - 1; d-- > 0;)
    strides[d] = strides[d + 1] * dims[d + 1];
  return strides;
}

}  // namespace

absl::StatusOr<std::unique_ptr<AttentionGraph>> AttentionGraph::Make(
    const Dnn& dnn, const AttentionDesc& desc, const DnnDescriptor* gpu) {
  if (dnn.Version() < kFirstVersion)
    return absl::UnimplementedError(absl::StrCat(
        "expected cuDNN 9.10 or later for attention, found ", dnn.Version()));
  std::unique_ptr<AttentionGraph> graph(new AttentionGraph(dnn, desc, gpu));
  PARTITA_RETURN_IF_ERROR(graph->CheckRows());
  graph->MakeOperations();
  PARTITA_RETURN_IF_ERROR(graph->status_);
  PARTITA_RETURN_IF_ERROR(graph->MakeGraph());
  return graph;
}

absl::Status AttentionGraph::CheckRows() const {
  const auto check = [](const AttentionDesc::Tensor& tensor, int64_t heads,
                        int64_t batch, int64_t positions) {
    const int64_t extents[] = {batch, heads, positions};
    bool fits = tensor.offset * kElementBytes % kTensorAlignment == 0;
    for (size_t d = 0; d < 3; ++d)
      fits =
          fits && (extents[d] == 1 ||
                   tensor.strides[d] * kElementBytes % kTensorAlignment == 0);
    return fits;
  };
  const int64_t batch = desc_.batch;
  if (check(desc_.q, desc_.heads, batch, desc_.queries) &&
      check(desc_.k, desc_.groups, batch, desc_.keys) &&
      check(desc_.v, desc_.groups, batch, desc_.keys) &&
      check(desc_.out, desc_.heads, batch, desc_.queries))
    return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat("expected rows of an attention at multiples of ",
                   kTensorAlignment, " bytes"));
}

DnnDescriptor& AttentionGraph::Add(DnnKind kind) {
  descriptors_.push_back(std::make_unique<DnnDescriptor>(dnn_, kind));
  return *descriptors_.back();
}

void AttentionGraph::Finish(DnnDescriptor& made) {
  status_.Update(made.Finalize(kDoing));
}

AttentionGraph::Tensor AttentionGraph::AddTensor(
    DnnDataType type, std::vector<int64_t> dims,
    const std::vector<int64_t>& strides, DnnAttribute flag) {
  DnnDescriptor& tensor = Add(kDnnTensor);
  const int64_t id = ++last_id_, alignment = kTensorAlignment;
  const bool yes = true;
  tensor.Set(kDnnTensorType, kDnnTypeDataType, &type);
  tensor.Set(kDnnTensorDims, dims);
  tensor.Set(kDnnTensorStrides, strides);
  tensor.Set(kDnnTensorId, kDnnTypeInt64, &id);
  tensor.Set(kDnnTensorAlignment, kDnnTypeInt64, &alignment);
  if (flag != kDnnTensorId) tensor.Set(flag, kDnnTypeBoolean, &yes);
  Finish(tensor);
  return {&tensor, std::move(dims), id};
}

AttentionGraph::Tensor AttentionGraph::Virtual(const std::vector<int64_t>& dims,
                                               DnnDataType type) {
  return AddTensor(type, dims, DenseStrides(dims), kDnnTensorIsVirtual);
}

AttentionGraph::Tensor AttentionGraph::Value(DnnDataType type,
                                             const void* value) {
  Tensor tensor =
      AddTensor(type, {1, 1, 1, 1}, {1, 1, 1, 1}, kDnnTensorIsByValue);
  bound_.push_back({tensor.id, -1, 0, value});
  return tensor;
}

AttentionGraph::Tensor AttentionGraph::Input(
    const AttentionDesc::Tensor& tensor, int64_t heads, int64_t positions,
    int64_t size, bool is_transposed) {
  std::vector<int64_t> dims = {desc_.batch, heads, positions, size};
  std::vector<int64_t> strides = {tensor.strides[0], tensor.strides[1],
                                  tensor.strides[2], 1};
  // The stride of a dimension of size 1 means nothing to us. The library wants
  // one that fits the others.
  int64_t span = 1;
  for (size_t d = 0; d < 4; ++d)
    if (dims[d] > 1) span = std::max(span, dims[d] * strides[d]);
  for (size_t d = 0; d < 3; ++d)
    if (dims[d] == 1) strides[d] = span;
  if (is_transposed) {
    std::swap(dims[2], dims[3]);
    std::swap(strides[2], strides[3]);
  }
  Tensor made = AddTensor(TypeOf(desc_), dims, strides);
  bound_.push_back(
      {made.id, tensor.operand, tensor.offset * kElementBytes, nullptr});
  return made;
}

AttentionGraph::Tensor AttentionGraph::Pointwise(
    DnnPointwiseMode mode, const Tensor& x, const Tensor* b, const Tensor& y,
    const Tensor* selector, int64_t axis) {
  DnnDescriptor& pointwise = Add(kDnnPointwise);
  const DnnDataType compute = kDnnF32;
  pointwise.Set(kDnnPointwiseMode, kDnnTypePointwiseMode, &mode);
  pointwise.Set(kDnnPointwiseComputeType, kDnnTypeDataType, &compute);
  if (axis >= 0) pointwise.Set(kDnnPointwiseAxis, kDnnTypeInt64, &axis);
  Finish(pointwise);
  const auto attribute = [](int i) {
    return static_cast<DnnAttribute>(kDnnPointwiseDescriptor + i);
  };
  DnnDescriptor& operation = Add(kDnnPointwiseOperation);
  operation.Set(kDnnPointwiseDescriptor, pointwise);
  operation.Set(attribute(1), *x.descriptor);
  if (b != nullptr) operation.Set(attribute(2), *b->descriptor);
  operation.Set(attribute(3), *y.descriptor);
  if (selector != nullptr)
    operation.Set(kDnnPointwiseSelector, *selector->descriptor);
  Finish(operation);
  operations_.push_back(operation.get());
  return y;
}

AttentionGraph::Tensor AttentionGraph::Reduce(DnnReductionMode mode,
                                              const Tensor& x) {
  DnnDescriptor& reduction = Add(kDnnReduction);
  const DnnDataType compute = kDnnF32;
  reduction.Set(kDnnReductionMode, kDnnTypeReductionMode, &mode);
  reduction.Set(kDnnReductionComputeType, kDnnTypeDataType, &compute);
  Finish(reduction);
  std::vector<int64_t> dims = x.dims;
  dims.back() = 1;
  Tensor y = Virtual(dims);
  const auto attribute = [](int i) {
    return static_cast<DnnAttribute>(kDnnReductionX + i);
  };
  DnnDescriptor& operation = Add(kDnnReductionOperation);
  operation.Set(kDnnReductionX, *x.descriptor);
  operation.Set(attribute(1), *y.descriptor);
  operation.Set(attribute(2), reduction);
  Finish(operation);
  operations_.push_back(operation.get());
  return y;
}

void AttentionGraph::Multiply(const Tensor& a, const Tensor& b,
                              const Tensor& c) {
  DnnDescriptor& product = Add(kDnnMatmul);
  const DnnDataType compute = kDnnF32;
  product.Set(kDnnMatmulComputeType, kDnnTypeDataType, &compute);
  Finish(product);
  const auto attribute = [](int i) {
    return static_cast<DnnAttribute>(kDnnMatmulA + i);
  };
  DnnDescriptor& operation = Add(kDnnMatmulOperation);
  operation.Set(kDnnMatmulA, *a.descriptor);
  operation.Set(attribute(1), *b.descriptor);
  operation.Set(attribute(2), *c.descriptor);
  operation.Set(attribute(3), product);
  Finish(operation);
  operations_.push_back(operation.get());
}

AttentionGraph::Tensor AttentionGraph::Mask(const Tensor& scores) {
  const auto integers = [&] { return Virtual(scores.dims, kDnnI32); };
  Tensor last = Pointwise(kDnnIndex, scores, nullptr, integers(), nullptr, 2);
  if (desc_.causal_offset > 0) {
    causal_offset_ = static_cast<int32_t>(desc_.causal_offset);
    const Tensor offset = Value(kDnnI32, &causal_offset_);
    last = Pointwise(kDnnAdd, last, &offset, integers());
  }
  const Tensor key =
      Pointwise(kDnnIndex, scores, nullptr, integers(), nullptr, 3);
  const Tensor is_seen = Pointwise(kDnnGreaterOrEqual, last, &key,
                                   Virtual(scores.dims, kDnnBoolean));
  hidden_ = -std::numeric_limits<float>::infinity();
  const Tensor hidden = Value(kDnnF32, &hidden_);
  return Pointwise(kDnnSelect, scores, &hidden, Virtual(scores.dims), &is_seen);
}

void AttentionGraph::MakeOperations() {
  const std::vector<int64_t> shape = {desc_.batch, desc_.heads, desc_.queries,
                                      desc_.keys};
  const std::vector<int64_t> rows = {desc_.batch, desc_.heads, desc_.queries,
                                     1};
  const Tensor q = Input(desc_.q, desc_.heads, desc_.queries, desc_.size);
  const Tensor k = Input(desc_.k, desc_.groups, desc_.keys, desc_.size,
                         /*is_transposed=*/true);
  const Tensor v = Input(desc_.v, desc_.groups, desc_.keys, desc_.value_size);
  const Tensor out =
      Input(desc_.out, desc_.heads, desc_.queries, desc_.value_size);
  scale_ = static_cast<float>(desc_.scale);
  const Tensor scale = Value(kDnnF32, &scale_);

  const Tensor products = Virtual(shape);
  Multiply(q, k, products);
  Tensor scores = Pointwise(kDnnMultiply, products, &scale, Virtual(shape));
  if (desc_.causal) scores = Mask(scores);
  const Tensor most = Reduce(kDnnMaximum, scores);
  const Tensor less = Pointwise(kDnnSubtract, scores, &most, Virtual(shape));
  const Tensor weights = Pointwise(kDnnExp, less, nullptr, Virtual(shape));
  const Tensor sum = Reduce(kDnnSum, weights);
  const Tensor log = Pointwise(kDnnLog, sum, nullptr, Virtual(rows));
  // The library recognizes the graph only with a log-sum-exp.
  Tensor lse;
  if (desc_.lse < 0) {
    lse = Virtual(rows);
  } else {
    lse = AddTensor(kDnnF32, rows, DenseStrides(rows));
    bound_.push_back({lse.id, desc_.lse, 0, nullptr});
  }
  Pointwise(kDnnAdd, most, &log, lse);
  const Tensor shares =
      Pointwise(kDnnDivide, weights, &sum, Virtual(shape, TypeOf(desc_)));
  Multiply(shares, v, out);
}

absl::Status AttentionGraph::MakeGraph() {
  graph_ = std::make_unique<DnnDescriptor>(dnn_, kDnnGraph);
  if (gpu_ == nullptr)
    graph_->Set(kDnnGraphHandle, kDnnTypeHandle, &dnn_.handle);
  graph_->Set(kDnnGraphOperations, kDnnTypeObject, operations_.data(),
              static_cast<int64_t>(operations_.size()));
  return graph_->Finalize("preparing an attention");
}

absl::StatusOr<std::vector<DnnPlan>> AttentionGraph::Plans(
    const std::string& name, const std::function<bool()>& has_time) const {
  return FindPlans(
      dnn_, *graph_, gpu_,
      {"attention", true, program::kAttentionWorkspaceBytes, name, has_time});
}

bool AttentionGraph::IsAligned(void* const* buffers) const {
  return std::all_of(bound_.begin(), bound_.end(), [&](const Bound& bound) {
    return bound.operand < 0 ||
           reinterpret_cast<uintptr_t>(buffers[bound.operand]) %
                   kTensorAlignment ==
               0;
  });
}

absl::Status AttentionGraph::Run(const DnnPlan& plan, DnnStream stream,
                                 void* const* buffers, void* workspace) const {
  std::vector<int64_t> ids;
  std::vector<void*> pointers;
  for (const Bound& bound : bound_) {
    ids.push_back(bound.id);
    pointers.push_back(bound.operand < 0
                           ? const_cast<void*>(bound.value)
                           : static_cast<char*>(buffers[bound.operand]) +
                                 bound.offset_bytes);
  }
  return RunPlan(dnn_, plan, stream, ids, pointers, workspace, "attending");
}

}  // namespace partita::cuda
