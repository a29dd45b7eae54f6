// Verifiers of mixtures of experts and of grouped products.
#include "dialects/nn/dialect.h"
#include "dialects/nn/verify.h"
#include "llvm/ADT/STLExtras.h"

namespace partita::nn {
namespace {

using mlir::ArrayRef;
using mlir::failed;
using mlir::failure;
using mlir::LogicalResult;
using mlir::RankedTensorType;
using mlir::SmallVector;
using mlir::success;
using mlir::Value;

// Requires three dimensions. `sizes` describes them in the message.
LogicalResult checkMatrices(mlir::Operation* op, llvm::StringRef name,
                            llvm::StringRef sizes, RankedTensorType type) {
  if (type.getRank() == 3) return success();
  return op->emitOpError() << "expected " << name << " of shape " << sizes
                           << ", found " << listToString(type.getShape());
}

// C1 of nn.experts and its gradient.
template <typename Op>
LogicalResult checkRows(Op op) {
  const RankedTensorType x = op.getX().getType(), ids = op.getIds().getType();
  if (x.getRank() == 0)
    return op.emitOpError() << "expected x of rank 1 or more, found 0";
  if (ids.getRank() != x.getRank() ||
      ids.getShape().drop_back() != x.getShape().drop_back())
    return op.emitOpError()
           << "expected ids with the sizes "
           << listToString(x.getShape().drop_back()) << " and one more, found "
           << listToString(ids.getShape());
  return checkShape(op, "weights", ids.getShape(),
                    op.getWeights().getType().getShape());
}

// C2 of nn.experts and its gradient.
template <typename Op>
LogicalResult checkParameters(Op op) {
  const RankedTensorType x = op.getX().getType(), up = op.getUp().getType(),
                         down = op.getDown().getType();
  if (failed(checkMatrices(op, "up", "[X, M, E]", up)) ||
      failed(checkMatrices(op, "down", "[X, E', M]", down)))
    return failure();
  const int64_t experts = up.getDimSize(0), hidden = up.getDimSize(1);
  if (failed(checkShape(op, "up",
                        {experts, hidden, x.getDimSize(x.getRank() - 1)},
                        up.getShape())) ||
      failed(checkShape(op, "down", {experts, down.getDimSize(1), hidden},
                        down.getShape())))
    return failure();
  if (op.getGateBias() && !op.getGate())
    return op.emitOpError() << "expected a gate, as there is a gate_bias";
  const std::tuple<llvm::StringRef, Value, SmallVector<int64_t>> others[] = {
      {"gate", op.getGate(), SmallVector<int64_t>(up.getShape())},
      {"gate_bias", op.getGateBias(), {experts, hidden}},
      {"up_bias", op.getUpBias(), {experts, hidden}},
      {"down_bias", op.getDownBias(), {experts, down.getDimSize(1)}}};
  for (const auto& [name, value, shape] : others) {
    if (value && failed(checkShape(
                     op, name, shape,
                     mlir::cast<RankedTensorType>(value.getType()).getShape())))
      return failure();
  }
  return success();
}

// C3 of nn.experts and its gradient. `result` is called `name` in messages.
template <typename Op>
LogicalResult checkExpertsResult(Op op, llvm::StringRef name,
                                 RankedTensorType result) {
  SmallVector<int64_t> shape(op.getX().getType().getShape());
  shape.back() = op.getDown().getType().getDimSize(1);
  if (failed(checkShape(op, name, shape, result.getShape()))) return failure();
  SmallVector<mlir::Type> floats;
  for (mlir::Type type : op->getOperandTypes())
    if (type != op.getIds().getType()) floats.push_back(type);
  floats.push_back(result);
  return checkElementTypes(op, floats);
}

}  // namespace

LogicalResult GroupedDotOp::verify() {
  // C1
  const RankedTensorType x = getX().getType(), w = getW().getType();
  if (x.getRank() != 2 || w.getRank() != 3)
    return emitOpError() << "expected x of rank 2 and w of rank 3, found "
                         << x.getRank() << " and " << w.getRank();
  const int64_t rows = x.getDimSize(0), width = x.getDimSize(1);
  if (failed(checkShape(*this, "ids", {rows}, getIds().getType().getShape())))
    return failure();
  const int64_t out = w.getDimSize(getTransposed() ? 2 : 1);
  SmallVector<int64_t> matrices = {w.getDimSize(0), out, width};
  if (getTransposed()) std::swap(matrices[1], matrices[2]);
  if (failed(checkShape(*this, "w", matrices, w.getShape())) ||
      failed(checkShape(*this, "a result", {rows, out}, getType().getShape())))
    return failure();
  return checkElementTypes(*this, {x, w, getType()});
}

LogicalResult GroupedDotWeightGradOp::verify() {
  // C1
  const RankedTensorType x = getX().getType(), g = getResultGrad().getType();
  if (x.getRank() != 2 || g.getRank() != 2)
    return emitOpError() << "expected x and result_grad of rank 2, found "
                         << x.getRank() << " and " << g.getRank();
  const int64_t rows = x.getDimSize(0);
  if (failed(checkShape(*this, "ids", {rows}, getIds().getType().getShape())) ||
      failed(checkShape(*this, "result_grad", {rows, g.getDimSize(1)},
                        g.getShape())) ||
      failed(checkMatrices(*this, "a result", "[X, N, K]", getType())) ||
      failed(checkShape(
          *this, "a result",
          {getType().getDimSize(0), g.getDimSize(1), x.getDimSize(1)},
          getType().getShape())))
    return failure();
  return checkElementTypes(*this, {x, g, getType()});
}

LogicalResult ExpertsOp::verify() {
  if (failed(checkRows(*this)) || failed(checkParameters(*this)))
    return failure();
  return checkExpertsResult(*this, "a result", getType());
}

LogicalResult ExpertsGradOp::verify() {
  if (failed(checkRows(*this)) || failed(checkParameters(*this)) ||
      failed(
          checkExpertsResult(*this, "result_grad", getResultGrad().getType())))
    return failure();
  // C4
  if (failed(
          checkType(*this, "x_grad", getX().getType(), getXGrad().getType())) ||
      failed(checkType(*this, "weights_grad", getWeights().getType(),
                       getWeightsGrad().getType())))
    return failure();
  constexpr unsigned kFirstParameter = 4;
  const mlir::ValueRange parameters = getOperands().drop_front(kFirstParameter);
  if (parameters.size() != getParameterGrads().size())
    return emitOpError() << "expected " << parameters.size()
                         << " gradients of parameters, found "
                         << getParameterGrads().size();
  for (auto [parameter, grad] : llvm::zip(parameters, getParameterGrads()))
    if (failed(checkType(*this, "a parameter's gradient", parameter.getType(),
                         grad.getType())))
      return failure();
  return success();
}

}  // namespace partita::nn
