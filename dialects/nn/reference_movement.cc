// Reference implementations of data movement.
#include <algorithm>
#include <numeric>

#include "dialects/nn/dialect.h"
#include "llvm/ADT/STLExtras.h"

namespace partita::nn {
namespace {

using mlir::ArrayRef;
using mlir::FailureOr;
using mlir::SmallVector;

FailureOr<SmallVector<Tensor>> one(Tensor result) {
  return SmallVector<Tensor>{std::move(result)};
}

// The source index of element `index` of a dimension of this size after padding
// with a mode other than `constant`.
int64_t paddedSource(PadMode mode, int64_t index, int64_t size) {
  if (mode == PadMode::edge) return std::clamp<int64_t>(index, 0, size - 1);
  if (mode == PadMode::wrap) return ((index % size) + size) % size;
  if (index < 0) return -index;
  return index < size ? index : 2 * (size - 1) - index;
}

// Maps result elements to the elements that nn.gather reads and nn.scatter
// updates.
struct Indexing {
  const Tensor& input;
  const Tensor& indices;
  ArrayRef<int64_t> axes;
  int64_t batch_dims;

  // The index into `input` for an index of the gather's result; not yet
  // clamped.
  SmallVector<int64_t> inputIndex(ArrayRef<int64_t> result_index) const {
    SmallVector<int64_t> vector_index(
        result_index.take_front(indices.rank() - 1));
    ArrayRef<int64_t> rest = result_index.drop_front(indices.rank() - 1);
    SmallVector<int64_t> index(result_index.take_front(batch_dims));
    vector_index.push_back(0);
    for (int64_t dim = batch_dims; dim < input.rank(); ++dim) {
      const auto* axis = llvm::find(axes, dim);
      if (axis == axes.end()) {
        index.push_back(rest.front());
        rest = rest.drop_front();
      } else {
        vector_index.back() = axis - axes.begin();
        index.push_back(indices.getInt(indices.position(vector_index)));
      }
    }
    return index;
  }
};

int64_t combineInts(ScatterKind kind, int64_t old, int64_t update) {
  switch (kind) {
    case ScatterKind::set:
      return update;
    case ScatterKind::add:
      return static_cast<uint64_t>(old) + static_cast<uint64_t>(update);
    case ScatterKind::mul:
      return static_cast<uint64_t>(old) * static_cast<uint64_t>(update);
    case ScatterKind::max:
      return std::max(old, update);
    case ScatterKind::min:
      return std::min(old, update);
  }
  llvm_unreachable("all kinds are above");
}

double combineFloats(ScatterKind kind, double old, double update) {
  switch (kind) {
    case ScatterKind::set:
      return update;
    case ScatterKind::add:
      return old + update;
    case ScatterKind::mul:
      return old * update;
    case ScatterKind::max:
      return std::isnan(old) || old > update ? old : update;
    case ScatterKind::min:
      return std::isnan(old) || old < update ? old : update;
  }
  llvm_unreachable("all kinds are above");
}

// True if element a comes before element b in a sort. NaN counts as the
// largest.
bool comesBefore(const Tensor& tensor, int64_t a, int64_t b, bool largest) {
  if (!tensor.isFloat()) {
    const int64_t x = tensor.getInt(a), y = tensor.getInt(b);
    return largest ? x > y : x < y;
  }
  const double x = tensor.getFloat(a), y = tensor.getFloat(b);
  if (std::isnan(x) || std::isnan(y))
    return largest ? !std::isnan(y) : !std::isnan(x);
  return largest ? x > y : x < y;
}

}  // namespace

FailureOr<SmallVector<Tensor>> BroadcastOp::evaluate(
    ArrayRef<Tensor> operands) {
  const Tensor& input = operands[0];
  Tensor result(getType());
  for (int64_t i = 0; i < result.size(); ++i) {
    const SmallVector<int64_t> index = result.index(i);
    SmallVector<int64_t> source;
    for (auto [dim, size] : llvm::zip_equal(getDims(), input.shape()))
      source.push_back(size == 1 ? 0 : index[dim]);
    result.copyFrom(i, input, input.position(source));
  }
  return one(std::move(result));
}

FailureOr<SmallVector<Tensor>> ReshapeOp::evaluate(ArrayRef<Tensor> operands) {
  Tensor result(getType());
  for (int64_t i = 0; i < result.size(); ++i)
    result.copyFrom(i, operands[0], i);
  return one(std::move(result));
}

FailureOr<SmallVector<Tensor>> TransposeOp::evaluate(
    ArrayRef<Tensor> operands) {
  Tensor result(getType());
  SmallVector<int64_t> source(result.rank());
  for (int64_t i = 0; i < result.size(); ++i) {
    for (auto [dim, at] : llvm::zip_equal(getPerm(), result.index(i)))
      source[dim] = at;
    result.copyFrom(i, operands[0], operands[0].position(source));
  }
  return one(std::move(result));
}

FailureOr<SmallVector<Tensor>> SliceOp::evaluate(ArrayRef<Tensor> operands) {
  Tensor result(getType());
  for (int64_t i = 0; i < result.size(); ++i) {
    SmallVector<int64_t> source = result.index(i);
    for (int64_t dim = 0; dim < result.rank(); ++dim)
      source[dim] = getStarts()[dim] + source[dim] * getStrides()[dim];
    result.copyFrom(i, operands[0], operands[0].position(source));
  }
  return one(std::move(result));
}

FailureOr<SmallVector<Tensor>> PadOp::evaluate(ArrayRef<Tensor> operands) {
  const Tensor &input = operands[0], &value = operands[1];
  Tensor result(getType());
  for (int64_t i = 0; i < result.size(); ++i) {
    SmallVector<int64_t> source = result.index(i);
    bool inside = true;
    for (int64_t dim = 0; dim < input.rank(); ++dim) {
      source[dim] -= getLow()[dim];
      if (source[dim] >= 0 && source[dim] < input.shape()[dim]) continue;
      inside = getMode() != PadMode::constant;
      if (!inside) break;
      source[dim] = paddedSource(getMode(), source[dim], input.shape()[dim]);
    }
    if (inside) {
      result.copyFrom(i, input, input.position(source));
    } else {
      result.copyFrom(i, value, 0);
    }
  }
  return one(std::move(result));
}

FailureOr<SmallVector<Tensor>> ConcatOp::evaluate(ArrayRef<Tensor> operands) {
  Tensor result(getType());
  int64_t offset = 0;
  for (const Tensor& input : operands) {
    for (int64_t i = 0; i < input.size(); ++i) {
      SmallVector<int64_t> target = input.index(i);
      target[getAxis()] += offset;
      result.copyFrom(result.position(target), input, i);
    }
    offset += input.shape()[getAxis()];
  }
  return one(std::move(result));
}

FailureOr<SmallVector<Tensor>> GatherOp::evaluate(ArrayRef<Tensor> operands) {
  const Tensor& input = operands[0];
  const Indexing indexing{input, operands[1], getAxes(),
                          static_cast<int64_t>(getBatchDims())};
  Tensor result(getType());
  for (int64_t i = 0; i < result.size(); ++i) {
    SmallVector<int64_t> source = indexing.inputIndex(result.index(i));
    for (auto [at, size] : llvm::zip_equal(source, input.shape())) {
      if (size == 0) return mlir::failure();  // no index to clamp to
      at = std::clamp<int64_t>(at, 0, size - 1);
    }
    result.copyFrom(i, input, input.position(source));
  }
  return one(std::move(result));
}

FailureOr<SmallVector<Tensor>> ScatterOp::evaluate(ArrayRef<Tensor> operands) {
  Tensor result = operands[0];
  const Tensor& updates = operands[2];
  const Indexing indexing{operands[0], operands[1], getAxes(),
                          static_cast<int64_t>(getBatchDims())};
  for (int64_t i = 0; i < updates.size(); ++i) {
    const SmallVector<int64_t> target = indexing.inputIndex(updates.index(i));
    const bool inside =
        llvm::all_of(llvm::zip_equal(target, result.shape()), [](auto pair) {
          return std::get<0>(pair) >= 0 &&
                 std::get<0>(pair) < std::get<1>(pair);
        });
    if (!inside) continue;
    const int64_t position = result.position(target);
    if (result.isFloat()) {
      result.setFloat(position,
                      combineFloats(getKind(), result.getFloat(position),
                                    updates.getFloat(i)));
    } else {
      result.setInt(position, combineInts(getKind(), result.getInt(position),
                                          updates.getInt(i)));
    }
  }
  return one(std::move(result));
}

FailureOr<SmallVector<Tensor>> IotaOp::evaluate(ArrayRef<Tensor>) {
  Tensor result(getType());
  for (int64_t i = 0; i < result.size(); ++i) {
    const int64_t count = result.index(i)[getDim()];
    if (result.isFloat()) {
      result.setFloat(i, static_cast<double>(count));
    } else {
      result.setInt(i, count);
    }
  }
  return one(std::move(result));
}

FailureOr<SmallVector<Tensor>> TopKOp::evaluate(ArrayRef<Tensor> operands) {
  const Tensor& input = operands[0];
  Tensor values(getValues().getType()), indices(getIndices().getType());
  const int64_t size = input.shape().back(), k = values.shape().back();
  for (int64_t row = 0; row < values.size() / k; ++row) {
    std::vector<int64_t> order(size);
    std::iota(order.begin(), order.end(), row * size);
    std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      if (comesBefore(input, a, b, getLargest())) return true;
      return !comesBefore(input, b, a, getLargest()) && a < b;
    });
    for (int64_t i = 0; i < k; ++i) {
      values.copyFrom(row * k + i, input, order[i]);
      indices.setInt(row * k + i, order[i] - row * size);
    }
  }
  return SmallVector<Tensor>{std::move(values), std::move(indices)};
}

}  // namespace partita::nn
