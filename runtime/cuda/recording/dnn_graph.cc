// Evaluates the operations in their order. Values of virtual tensors are kept,
// rounded to the tensor's type.
#include "runtime/cuda/recording/dnn_graph.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "runtime/cuda/recording/touched_kernels.h"

namespace partita::cuda::recording {
namespace {

using Shape = std::vector<int64_t>;

int64_t CountOf(const Shape& dims) {
  int64_t count = 1;
  for (const int64_t size : dims) count *= size;
  return count;
}

// Calls visit(position, index of the element) for a dense tensor.
template <typename Visit>
void ForEach(const Shape& dims, const Visit& visit) {
  int64_t index = 0;
  std::array<int64_t, 4> at = {};
  for (at[0] = 0; at[0] < dims[0]; ++at[0])
    for (at[1] = 0; at[1] < dims[1]; ++at[1])
      for (at[2] = 0; at[2] < dims[2]; ++at[2])
        for (at[3] = 0; at[3] < dims[3]; ++at[3])
          visit(at, static_cast<size_t>(index++));
}

// The element of a dense tensor at a position, repeated along its dimensions of
// size 1.
size_t IndexIn(const Shape& dims, const std::array<int64_t, 4>& at) {
  int64_t index = 0;
  for (size_t d = 0; d < 4; ++d)
    index = index * dims[d] + (dims[d] == 1 ? 0 : at[d]);
  return static_cast<size_t>(index);
}

KernelType TypeOf(int type) {
  return type == kDnnF16    ? KernelType::kF16
         : type == kDnnBF16 ? KernelType::kBF16
                            : KernelType::kF32;
}

float Apply(int mode, float x, float b, float selector) {
  switch (mode) {
    case kDnnAdd:
      return x + b;
    case kDnnMultiply:
      return x * b;
    case kDnnDivide:
      return x / b;
    case kDnnSubtract:
      return x - b;
    case kDnnExp:
      return std::exp(x);
    case kDnnLog:
      return std::log(x);
    case kDnnGreaterOrEqual:
      return x >= b;
    case kDnnSelect:
      return selector != 0 ? x : b;
    default:
      return std::numeric_limits<float>::quiet_NaN();
  }
}

}  // namespace

OperationGraph::OperationGraph(const Object& graph) {
  for (const Object* op : graph.All<const Object*>(kDnnGraphOperations)) {
    Operation operation;
    operation.kind = op->kind;
    if (op->kind == kDnnMatmulOperation) {
      operation.x = Add(op->Other(kDnnMatmulA));
      operation.b = Add(op->Other(kDnnMatmulA + 1));
      operation.y = Add(op->Other(kDnnMatmulA + 2));
    } else if (op->kind == kDnnReductionOperation) {
      operation.x = Add(op->Other(kDnnReductionX));
      operation.y = Add(op->Other(kDnnReductionX + 1));
      operation.mode =
          op->Other(kDnnReductionX + 2)->One<int>(kDnnReductionMode);
    } else {
      const Object& pointwise = *op->Other(kDnnPointwiseDescriptor);
      operation.mode = pointwise.One<int>(kDnnPointwiseMode);
      operation.axis = pointwise.One<int64_t>(kDnnPointwiseAxis);
      operation.x = Add(op->Other(kDnnPointwiseDescriptor + 1));
      operation.b = Add(op->Other(kDnnPointwiseDescriptor + 2));
      operation.y = Add(op->Other(kDnnPointwiseDescriptor + 3));
      operation.selector = Add(op->Other(kDnnPointwiseSelector));
    }
    operations_.push_back(operation);
  }
}

int64_t OperationGraph::Add(const Object* object) {
  if (object == nullptr) return 0;
  const int64_t id = object->One<int64_t>(kDnnTensorId);
  Tensor& tensor = tensors_[id];
  tensor.dims = object->All<int64_t>(kDnnTensorDims);
  tensor.strides = object->All<int64_t>(kDnnTensorStrides);
  tensor.type = object->One<int>(kDnnTensorType);
  tensor.alignment = object->One<int64_t>(kDnnTensorAlignment);
  tensor.is_virtual = object->One<char>(kDnnTensorIsVirtual) != 0;
  tensor.is_by_value = object->One<char>(kDnnTensorIsByValue) != 0;
  return id;
}

bool OperationGraph::Fits() const {
  for (const auto& [id, tensor] : tensors_)
    if (tensor.dims.size() != 4 || tensor.strides.size() != 4) return false;
  for (const Operation& operation : operations_) {
    const Shape& x = tensors_.at(operation.x).dims;
    const Shape& y = tensors_.at(operation.y).dims;
    if (operation.kind == kDnnMatmulOperation) {
      const Shape& b = tensors_.at(operation.b).dims;
      if (x[0] != b[0] || x[1] % b[1] != 0 || x[3] != b[2] ||
          y != Shape{x[0], x[1], x[2], b[3]})
        return false;
      continue;
    }
    for (const int64_t id : {operation.x, operation.b, operation.selector})
      for (size_t d = 0; id != 0 && d < 4; ++d) {
        const int64_t size = tensors_.at(id).dims[d];
        const bool is_reduced =
            operation.kind == kDnnReductionOperation && y[d] == 1;
        if (size != 1 && size != y[d] && !is_reduced) return false;
      }
  }
  return true;
}

bool OperationGraph::Bind(const std::vector<int64_t>& ids,
                          const std::vector<char*>& pointers) {
  for (auto& [id, tensor] : tensors_) {
    if (tensor.is_virtual) continue;
    const auto found = std::find(ids.begin(), ids.end(), id);
    if (found == ids.end()) return false;
    tensor.data = pointers[static_cast<size_t>(found - ids.begin())];
    if (!tensor.is_by_value) {
      if (reinterpret_cast<intptr_t>(tensor.data) % tensor.alignment != 0)
        return false;
    } else if (tensor.type == kDnnI32) {
      int32_t value = 0;
      std::memcpy(&value, tensor.data, sizeof(value));
      tensor.value = static_cast<float>(value);
    } else {
      std::memcpy(&tensor.value, tensor.data, sizeof(tensor.value));
    }
  }
  return true;
}

std::vector<float> OperationGraph::Read(const Tensor& tensor) const {
  if (tensor.is_by_value) return {tensor.value};
  std::vector<float> values(static_cast<size_t>(CountOf(tensor.dims)));
  ForEach(tensor.dims, [&](const std::array<int64_t, 4>& at, size_t index) {
    Int place = 0;
    for (size_t d = 0; d < 4; ++d) place += at[d] * tensor.strides[d];
    values[index] = Load(TypeOf(tensor.type), tensor.data, place);
  });
  return values;
}

void OperationGraph::Write(const Tensor& tensor,
                           std::vector<float>& values) const {
  ForEach(tensor.dims, [&](const std::array<int64_t, 4>& at, size_t index) {
    Int place = 0;
    for (size_t d = 0; d < 4; ++d) place += at[d] * tensor.strides[d];
    Store(TypeOf(tensor.type), tensor.data, place, values[index]);
  });
}

void OperationGraph::Multiply(const Operation& operation,
                              Values& values) const {
  const Shape& x = tensors_.at(operation.x).dims;
  const Shape& b = tensors_.at(operation.b).dims;
  const int64_t share = x[1] / b[1];
  std::vector<float>& sums = values[operation.y];
  ForEach(tensors_.at(operation.y).dims, [&](const std::array<int64_t, 4>& at,
                                             size_t index) {
    float sum = 0;
    for (int64_t k = 0; k < x[3]; ++k)
      sum += values[operation.x][IndexIn(x, {at[0], at[1], at[2], k})] *
             values[operation.b][IndexIn(b, {at[0], at[1] / share, k, at[3]})];
    sums[index] = sum;
  });
}

void OperationGraph::Compute(const Operation& operation, Values& values) const {
  const Tensor& y = tensors_.at(operation.y);
  const bool is_maximum =
      operation.kind == kDnnReductionOperation && operation.mode == kDnnMaximum;
  values[operation.y].assign(
      static_cast<size_t>(CountOf(y.dims)),
      is_maximum ? -std::numeric_limits<float>::infinity() : 0);
  if (operation.kind == kDnnMatmulOperation) return Multiply(operation, values);
  std::vector<float>& results = values[operation.y];
  const Shape& x = tensors_.at(operation.x).dims;
  if (operation.kind == kDnnReductionOperation) {
    ForEach(x, [&](const std::array<int64_t, 4>& at, size_t index) {
      float& result = results[IndexIn(y.dims, at)];
      const float value = values[operation.x][index];
      result = is_maximum ? std::max(result, value) : result + value;
    });
    return;
  }
  const auto element = [&](int64_t id, const std::array<int64_t, 4>& at) {
    return id == 0 ? 0.0f : values[id][IndexIn(tensors_.at(id).dims, at)];
  };
  ForEach(y.dims, [&](const std::array<int64_t, 4>& at, size_t index) {
    results[index] =
        operation.mode == kDnnIndex
            ? static_cast<float>(at[static_cast<size_t>(operation.axis)])
            : Apply(operation.mode, element(operation.x, at),
                    element(operation.b, at), element(operation.selector, at));
  });
}

void OperationGraph::Run() const {
  Values values;
  for (const Operation& operation : operations_) {
    for (const int64_t id : {operation.x, operation.b, operation.selector})
      if (id != 0 && values.count(id) == 0) values[id] = Read(tensors_.at(id));
    Compute(operation, values);
    const Tensor& y = tensors_.at(operation.y);
    if (!y.is_virtual) Write(y, values[operation.y]);
    // Rounds values that a later operation reads.
    if (y.is_virtual && (y.type == kDnnF16 || y.type == kDnnBF16))
      for (float& value : values[operation.y]) {
        uint16_t rounded = 0;
        Store(TypeOf(y.type), reinterpret_cast<char*>(&rounded), 0, value);
        value = Load(TypeOf(y.type), reinterpret_cast<char*>(&rounded), 0);
      }
  }
}

}  // namespace partita::cuda::recording
