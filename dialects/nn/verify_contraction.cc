// Verifiers of contraction, reduction and their gradients. `Cn` is the
// constraint in the operation's description.
#include "dialects/nn/dialect.h"
#include "dialects/nn/verify.h"
#include "llvm/ADT/STLExtras.h"

namespace partita::nn {

using mlir::ArrayRef;
using mlir::failed;
using mlir::failure;
using mlir::LogicalResult;
using mlir::RankedTensorType;
using mlir::SmallVector;
using mlir::success;

// Requires `batch` and `contract` to be distinct dimensions of `type`.
static LogicalResult checkSide(mlir::Operation* op, llvm::StringRef side,
                               RankedTensorType type, ArrayRef<int64_t> batch,
                               ArrayRef<int64_t> contract) {
  const SmallVector<int64_t> dims =
      llvm::to_vector(llvm::concat<const int64_t>(batch, contract));
  return checkDistinctDims(op,
                           (side + "_batch and " + side + "_contract").str(),
                           dims, type.getRank());
}

static LogicalResult checkPairs(mlir::Operation* op, RankedTensorType lhs,
                                RankedTensorType rhs,
                                ArrayRef<int64_t> lhs_dims,
                                ArrayRef<int64_t> rhs_dims) {
  for (auto [left, right] : llvm::zip_equal(lhs_dims, rhs_dims)) {
    if (lhs.getDimSize(left) != rhs.getDimSize(right)) {
      return op->emitOpError()
             << "expected paired dimensions " << left << " of lhs and " << right
             << " of rhs to have equal sizes, found " << lhs.getDimSize(left)
             << " and " << rhs.getDimSize(right);
    }
  }
  return success();
}

LogicalResult DotGeneralOp::verify() {
  const RankedTensorType lhs = getLhs().getType(), rhs = getRhs().getType();
  // C1
  if (getLhsBatch().size() != getRhsBatch().size() ||
      getLhsContract().size() != getRhsContract().size()) {
    return emitOpError() << "expected as many batch and contracted dimensions "
                            "of lhs as of rhs, found "
                         << listToString(getLhsBatch()) << " x "
                         << listToString(getRhsBatch()) << " and "
                         << listToString(getLhsContract()) << " x "
                         << listToString(getRhsContract());
  }
  if (failed(checkSide(*this, "lhs", lhs, getLhsBatch(), getLhsContract())))
    return failure();
  if (failed(checkSide(*this, "rhs", rhs, getRhsBatch(), getRhsContract())))
    return failure();
  // C2
  if (failed(checkPairs(*this, lhs, rhs, getLhsBatch(), getRhsBatch())))
    return failure();
  if (failed(checkPairs(*this, lhs, rhs, getLhsContract(), getRhsContract())))
    return failure();
  if (failed(checkElementTypes(*this, {lhs, rhs}))) return failure();
  // C3
  const RankedTensorType expected =
      inferDotGeneralType(lhs, rhs, getLhsBatch(), getRhsBatch(),
                          getLhsContract(), getRhsContract());
  return checkType(*this, "a result", expected, getType());
}

// Checks C1 to C4 of nn.conv and its gradients. The three tensors are passed in
// the convolution's roles, and `names` are their names in messages. The shape
// of the last one follows from the others.
template <typename Op>
static LogicalResult checkConvolution(Op op, RankedTensorType input,
                                      RankedTensorType weight,
                                      RankedTensorType result,
                                      ArrayRef<llvm::StringRef> names) {
  // C1
  const int64_t rank = input.getRank();
  if (rank < 3 || rank > 5 || weight.getRank() != rank ||
      result.getRank() != rank) {
    return op.emitOpError()
           << "expected " << names[0] << ", " << names[1] << " and " << names[2]
           << " of one rank from 3 to 5, found " << rank << ", "
           << weight.getRank() << " and " << result.getRank();
  }
  if (failed(checkElementTypes(op, {input, weight, result}))) return failure();
  // C2
  const int64_t spatial = rank - 2;
  if (failed(checkEntries(op, "strides", op.getStrides(), spatial, 1)))
    return failure();
  if (failed(checkEntries(op, "dilations", op.getDilations(), spatial, 1)))
    return failure();
  if (failed(checkEntries(op, "low", op.getLow(), spatial, 0)))
    return failure();
  if (failed(checkEntries(op, "high", op.getHigh(), spatial, 0)))
    return failure();
  // C3
  const int64_t feature = op.getChannelsLast() ? rank - 1 : 1,
                first = op.getChannelsLast() ? 1 : 2;
  const int64_t channels = input.getDimSize(feature),
                filters = weight.getDimSize(0), groups = op.getGroups();
  if (groups < 1 || channels % groups != 0 || filters % groups != 0) {
    return op.emitOpError()
           << "expected 'groups' to be positive and to divide the " << channels
           << " input and " << filters << " output channels, found " << groups;
  }
  if (weight.getDimSize(1) != channels / groups) {
    return op.emitOpError()
           << "expected a " << names[1] << " whose size 1 is "
           << channels / groups << ", the input channels of a group, found "
           << weight.getDimSize(1);
  }
  // C4
  SmallVector<int64_t> shape(input.getShape());
  shape[feature] = filters;
  for (int64_t i = 0; i < spatial; ++i) {
    shape[first + i] =
        windowedSize(input.getDimSize(first + i), weight.getDimSize(2 + i),
                     op.getStrides()[i], op.getDilations()[i], op.getLow()[i],
                     op.getHigh()[i]);
  }
  return checkShape(op, ("a " + names[2]).str(), shape, result.getShape());
}

LogicalResult ConvOp::verify() {
  return checkConvolution(*this, getInput().getType(), getWeight().getType(),
                          getType(), {"input", "weight", "result"});
}

LogicalResult ConvInputGradOp::verify() {
  return checkConvolution(*this, getType(), getWeight().getType(),
                          getResultGrad().getType(),
                          {"result", "weight", "result_grad"});
}

LogicalResult ConvWeightGradOp::verify() {
  return checkConvolution(*this, getInput().getType(), getType(),
                          getResultGrad().getType(),
                          {"input", "result", "result_grad"});
}

LogicalResult ReduceOp::verify() {
  const RankedTensorType input = getInput().getType();
  const RankedTensorType expected = inferReduceType(input, getDims());
  // C1
  if (!expected) {
    return emitOpError()
           << "expected 'dims' to be increasing dimensions of an input of rank "
           << input.getRank() << ", found " << listToString(getDims());
  }
  return checkType(*this, "a result", expected, getType());  // C2
}

// Checks the attributes of nn.reduce_window or its gradient, and the type of
// `result`, called `name`, for an input of type `input`.
template <typename Op>
static LogicalResult checkWindow(Op op, RankedTensorType input,
                                 llvm::StringRef name,
                                 RankedTensorType result) {
  const int64_t rank = input.getRank();
  // C1, of the gradient C2
  if (failed(checkEntries(op, "window", op.getWindow(), rank, 1)))
    return failure();
  if (failed(checkEntries(op, "strides", op.getStrides(), rank, 1)))
    return failure();
  if (failed(checkEntries(op, "dilations", op.getDilations(), rank, 1)))
    return failure();
  if (failed(checkEntries(op, "low", op.getLow(), rank, 0))) return failure();
  if (failed(checkEntries(op, "high", op.getHigh(), rank, 0))) return failure();
  // C2, of the gradient C3
  SmallVector<int64_t> shape;
  for (int64_t i = 0; i < rank; ++i) {
    shape.push_back(windowedSize(input.getDimSize(i), op.getWindow()[i],
                                 op.getStrides()[i], op.getDilations()[i],
                                 op.getLow()[i], op.getHigh()[i]));
  }
  return checkType(op, name, input.clone(shape), result);
}

LogicalResult ReduceWindowOp::verify() {
  return checkWindow(*this, getInput().getType(), "a result", getType());
}

LogicalResult ReduceWindowGradOp::verify() {
  // C1
  if (getKind() == ReduceKind::prod)
    return emitOpError() << "expected kind sum, max or min, found prod";
  if (getKind() != ReduceKind::sum && !getInput())
    return emitOpError() << "expected an input, which "
                         << stringifyReduceKind(getKind())
                         << " needs, found none";
  if (getInput() &&
      failed(checkType(*this, "an input", getType(), getInput().getType())))
    return failure();
  return checkWindow(*this, getType(), "a result_grad",
                     getResultGrad().getType());
}

}  // namespace partita::nn
