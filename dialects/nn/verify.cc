// Verifiers of data movement. `Cn` is the constraint in the operation's
// description.
#include "dialects/nn/verify.h"

#include "dialects/nn/dialect.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallBitVector.h"
#include "mlir/IR/TypeUtilities.h"

namespace partita::nn {

using mlir::ArrayRef;
using mlir::failed;
using mlir::failure;
using mlir::LogicalResult;
using mlir::RankedTensorType;
using mlir::SmallVector;
using mlir::success;

std::string listToString(ArrayRef<int64_t> values) {
  std::string text = "[";
  llvm::interleave(
      values, [&](int64_t value) { text += std::to_string(value); },
      [&] { text += ", "; });
  return text + "]";
}

LogicalResult checkEntries(mlir::Operation* op, llvm::StringRef name,
                           ArrayRef<int64_t> values, int64_t count,
                           int64_t minimum) {
  if (static_cast<int64_t>(values.size()) == count &&
      llvm::all_of(values, [&](int64_t value) { return value >= minimum; }))
    return success();
  return op->emitOpError() << "expected '" << name << "' to have " << count
                           << " entries of at least " << minimum << ", found "
                           << listToString(values);
}

LogicalResult checkDim(mlir::Operation* op, llvm::StringRef name, int64_t dim,
                       int64_t rank) {
  if (dim >= 0 && dim < rank) return success();
  return op->emitOpError() << "expected '" << name
                           << "' to be a dimension of a tensor of rank " << rank
                           << ", found " << dim;
}

LogicalResult checkDistinctDims(mlir::Operation* op, llvm::StringRef name,
                                ArrayRef<int64_t> dims, int64_t rank,
                                int64_t first) {
  llvm::SmallBitVector seen(rank);
  for (int64_t dim : dims) {
    if (dim < first || dim >= rank || seen.test(dim)) {
      return op->emitOpError()
             << "expected '" << name << "' to be distinct dimensions from "
             << first << " to " << rank - 1 << ", found " << listToString(dims);
    }
    seen.set(dim);
  }
  return success();
}

LogicalResult checkElementTypes(mlir::Operation* op,
                                ArrayRef<mlir::Type> types) {
  const mlir::Type expected = mlir::getElementTypeOrSelf(types.front());
  for (mlir::Type type : types.drop_front()) {
    if (mlir::getElementTypeOrSelf(type) != expected) {
      return op->emitOpError()
             << "expected equal element types, found " << expected << " and "
             << mlir::getElementTypeOrSelf(type);
    }
  }
  return success();
}

LogicalResult checkType(mlir::Operation* op, llvm::StringRef name,
                        mlir::Type expected, mlir::Type found) {
  if (expected == found) return success();
  return op->emitOpError() << "expected " << name << " of type " << expected
                           << ", found " << found;
}

LogicalResult checkShape(mlir::Operation* op, llvm::StringRef name,
                         ArrayRef<int64_t> expected, ArrayRef<int64_t> found) {
  if (expected == found) return success();
  return op->emitOpError() << "expected " << name << " of shape "
                           << listToString(expected) << ", found "
                           << listToString(found);
}

//===----------------------------------------------------------------------===//
// Data movement
//===----------------------------------------------------------------------===//

LogicalResult BroadcastOp::verify() {
  const RankedTensorType input = getInput().getType(), result = getType();
  const ArrayRef<int64_t> dims = getDims();
  // C1
  if (static_cast<int64_t>(dims.size()) != input.getRank()) {
    return emitOpError()
           << "expected 'dims' to have one entry for each of the input's "
           << input.getRank() << " dimensions, found " << listToString(dims);
  }
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < 0 || dims[i] >= result.getRank() ||
        (i > 0 && dims[i] <= dims[i - 1])) {
      return emitOpError() << "expected 'dims' to be increasing dimensions of "
                              "a result of rank "
                           << result.getRank() << ", found "
                           << listToString(dims);
    }
  }
  // C2
  for (int64_t i = 0; i < input.getRank(); ++i) {
    const int64_t size = input.getDimSize(i),
                  target = result.getDimSize(dims[i]);
    if (size != 1 && size != target) {
      return emitOpError() << "expected the input's size " << i
                           << " to be 1 or the result's size " << dims[i]
                           << ", which is " << target << ", found " << size;
    }
  }
  return checkElementTypes(*this, {input, result});  // C3
}

LogicalResult ReshapeOp::verify() {
  const RankedTensorType input = getInput().getType(), result = getType();
  // C1
  if (input.getNumElements() != result.getNumElements()) {
    return emitOpError() << "expected a result of " << input.getNumElements()
                         << " elements, as the input has, found "
                         << result.getNumElements();
  }
  return checkElementTypes(*this, {input, result});
}

LogicalResult TransposeOp::verify() {
  const RankedTensorType input = getInput().getType();
  const RankedTensorType expected = inferTransposeType(input, getPerm());
  // C1
  if (!expected) {
    return emitOpError()
           << "expected 'perm' to be a permutation of the input's "
           << input.getRank() << " dimensions, found "
           << listToString(getPerm());
  }
  return checkType(*this, "a result", expected, getType());  // C2
}

LogicalResult SliceOp::verify() {
  const RankedTensorType input = getInput().getType(), result = getType();
  const int64_t rank = input.getRank();
  // C1
  if (static_cast<int64_t>(getStarts().size()) != rank ||
      static_cast<int64_t>(getStrides().size()) != rank) {
    return emitOpError() << "expected 'starts' and 'strides' to have one entry "
                            "for each of the input's "
                         << rank << " dimensions, found "
                         << listToString(getStarts()) << " and "
                         << listToString(getStrides());
  }
  if (llvm::is_contained(getStrides(), 0)) {
    return emitOpError() << "expected 'strides' without 0, found "
                         << listToString(getStrides());
  }
  // C2
  if (failed(checkElementTypes(*this, {input, result}))) return failure();
  if (result.getRank() != rank) {
    return emitOpError() << "expected a result of the input's rank " << rank
                         << ", found " << result.getRank();
  }
  if (result.getNumElements() == 0) return success();
  for (int64_t i = 0; i < rank; ++i) {
    const int64_t first = getStarts()[i],
                  last = first + (result.getDimSize(i) - 1) * getStrides()[i];
    if (std::min(first, last) < 0 ||
        std::max(first, last) >= input.getDimSize(i)) {
      return emitOpError() << "expected elements of dimension " << i
                           << " to lie inside its size " << input.getDimSize(i)
                           << ", found the first at " << first
                           << " and the last at " << last;
    }
  }
  return success();
}

LogicalResult PadOp::verify() {
  const RankedTensorType input = getInput().getType(), result = getType();
  const int64_t rank = input.getRank();
  // C1
  if (failed(checkEntries(*this, "low", getLow(), rank, 0))) return failure();
  if (failed(checkEntries(*this, "high", getHigh(), rank, 0))) return failure();
  // C2
  SmallVector<int64_t> shape;
  for (int64_t i = 0; i < rank; ++i)
    shape.push_back(getLow()[i] + input.getDimSize(i) + getHigh()[i]);
  if (failed(checkType(*this, "a result", input.clone(shape), result)))
    return failure();
  const RankedTensorType scalar =
      RankedTensorType::get({}, input.getElementType());
  if (failed(checkType(*this, "a padding value", scalar, getValue().getType())))
    return failure();
  // C3
  if (getMode() == PadMode::constant) return success();
  for (int64_t i = 0; i < rank; ++i) {
    const int64_t most = std::max(getLow()[i], getHigh()[i]),
                  size = input.getDimSize(i);
    const bool fits =
        most == 0 || (getMode() == PadMode::reflect ? most < size : size > 0);
    if (!fits) {
      return emitOpError() << "expected mode '" << stringifyPadMode(getMode())
                           << "' to pad dimension " << i << " of size " << size
                           << " by "
                           << (getMode() == PadMode::reflect ? "less than that"
                                                             : "nothing")
                           << ", found " << most;
    }
  }
  return success();
}

LogicalResult ConcatOp::verify() {
  // C1
  if (getInputs().empty())
    return emitOpError() << "expected at least one input, found none";
  const RankedTensorType result = getType();
  const int64_t axis = getAxis();
  if (failed(checkDim(*this, "axis", axis, result.getRank()))) return failure();
  // C2
  int64_t sum = 0;
  for (auto [i, input] : llvm::enumerate(getInputs())) {
    const auto type = mlir::cast<RankedTensorType>(input.getType());
    SmallVector<int64_t> expected(result.getShape());
    if (type.getRank() == result.getRank())
      expected[axis] = type.getDimSize(axis);
    const std::string name = "input " + std::to_string(i);
    if (failed(checkType(*this, name, result.clone(expected), type)))
      return failure();
    sum += type.getDimSize(axis);
  }
  if (sum == result.getDimSize(axis)) return success();
  return emitOpError() << "expected a result whose size " << axis << " is "
                       << sum << ", the sum of the inputs', found "
                       << result.getDimSize(axis);
}

// Constraints C1 and C2 of nn.gather and nn.scatter.
static LogicalResult checkIndexing(mlir::Operation* op, RankedTensorType input,
                                   RankedTensorType indices,
                                   ArrayRef<int64_t> axes, int64_t batch_dims) {
  if (failed(checkDistinctDims(op, "axes", axes, input.getRank(), batch_dims)))
    return failure();  // C1
  // C2
  if (batch_dims < 0 || batch_dims > input.getRank() ||
      indices.getRank() < batch_dims + 1) {
    return op->emitOpError()
           << "expected indices of rank " << batch_dims + 1
           << " (batch_dims + 1) or more and an "
           << "input of rank " << batch_dims << " or more, found ranks "
           << indices.getRank() << " and " << input.getRank();
  }
  if (indices.getShape().back() != static_cast<int64_t>(axes.size())) {
    return op->emitOpError()
           << "expected indices whose last size is the number of axes, "
           << axes.size() << ", found " << indices.getShape().back();
  }
  return checkShape(op, "batch dimensions of indices",
                    input.getShape().take_front(batch_dims),
                    indices.getShape().take_front(batch_dims));
}

LogicalResult GatherOp::verify() {
  const RankedTensorType input = getInput().getType(),
                         indices = getIndices().getType();
  const int64_t batch_dims = getBatchDims();
  if (failed(checkIndexing(*this, input, indices, getAxes(), batch_dims)))
    return failure();
  return checkType(*this, "a result",
                   inferGatherType(input, indices, getAxes(), batch_dims),
                   getType());  // C3
}

LogicalResult ScatterOp::verify() {
  const RankedTensorType input = getInput().getType(),
                         indices = getIndices().getType();
  const int64_t batch_dims = getBatchDims();
  if (failed(checkIndexing(*this, input, indices, getAxes(), batch_dims)))
    return failure();
  // C3
  const RankedTensorType updates =
      inferGatherType(input, indices, getAxes(), batch_dims);
  if (failed(checkType(*this, "updates", updates, getUpdates().getType())))
    return failure();
  return checkType(*this, "a result", input, getType());
}

LogicalResult IotaOp::verify() {
  return checkDim(*this, "dim", getDim(), getType().getRank());
}  // C1

LogicalResult TopKOp::verify() {
  const RankedTensorType input = getInput().getType(),
                         values = getValues().getType();
  // C1
  if (input.getRank() == 0)
    return emitOpError() << "expected an input of rank 1 or more, found 0";
  const int64_t size = input.getShape().back(),
                k = values.getRank() == 0 ? 0 : values.getShape().back();
  if (k < 1 || k > size) {
    return emitOpError() << "expected values whose last size is from 1 to "
                         << size << ", found " << k;
  }
  // C2
  SmallVector<int64_t> shape(input.getShape());
  shape.back() = k;
  if (failed(checkType(*this, "values", input.clone(shape), values)))
    return failure();
  return checkShape(*this, "indices", shape, getIndices().getType().getShape());
}

}  // namespace partita::nn
