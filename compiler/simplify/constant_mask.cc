// Evaluates constant expressions with the operations' references, and compares
// masks with the causal mask.
#include "compiler/simplify/constant_mask.h"

#include "compiler/simplify/view.h"
#include "llvm/ADT/STLExtras.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace partita::simplify {

using mlir::SmallVector;
using mlir::Value;

namespace {

// Limits on each tensor and on the whole expression.
constexpr int64_t kMaxElements = int64_t{1} << 22, kMaxOperations = 64;

std::optional<nn::Tensor> evaluate(Value value, int64_t& operations) {
  mlir::Operation* op = value.getDefiningOp();
  auto type = mlir::dyn_cast<mlir::RankedTensorType>(value.getType());
  if (!op || !type || type.getNumElements() > kMaxElements ||
      ++operations > kMaxOperations)
    return std::nullopt;
  if (auto constant = mlir::dyn_cast<mlir::arith::ConstantOp>(op)) {
    auto dense = mlir::dyn_cast<mlir::DenseElementsAttr>(constant.getValue());
    return dense ? std::optional(nn::Tensor::fromAttr(dense)) : std::nullopt;
  }
  auto reference = mlir::dyn_cast<nn::ReferenceOpInterface>(op);
  if (!reference) return std::nullopt;
  SmallVector<nn::Tensor> operands;
  for (Value operand : op->getOperands()) {
    std::optional<nn::Tensor> tensor = evaluate(operand, operations);
    if (!tensor) return std::nullopt;
    operands.push_back(std::move(*tensor));
  }
  mlir::FailureOr<SmallVector<nn::Tensor>> results =
      reference.evaluate(operands);
  if (failed(results)) return std::nullopt;
  return (*results)[mlir::cast<mlir::OpResult>(value).getResultNumber()];
}

// Returns true if the bias hides an element, false if it leaves the score
// unchanged, nullopt otherwise.
std::optional<bool> hides(const ScoreBias& bias, const nn::Tensor& tensor,
                          int64_t position) {
  if (bias.kind == ScoreBias::Kind::visible)
    return tensor.getInt(position) == 0;
  if (bias.kind == ScoreBias::Kind::hidden) return tensor.getInt(position) != 0;
  const double summand = tensor.getFloat(position) * bias.factor;
  if (summand == 0) return false;
  return summand <= kHidingScore ? std::optional(true) : std::nullopt;
}

}  // namespace

std::optional<nn::Tensor> evaluateConstant(Value value) {
  int64_t operations = 0;
  return evaluate(value, operations);
}

std::optional<ConstantMask> matchConstantMask(const ScoreBias& bias) {
  const View view = peel(bias.value);
  const MatrixDims& dims = bias.scores.dims;
  // Strides from one query or key to the next in the tensor; 0 if the tensor
  // repeats along it.
  int64_t query_step = 0, key_step = 0, step = 1;
  const llvm::ArrayRef<int64_t> shape = tensorType(view.value).getShape();
  const bool is_splat = static_cast<bool>(splatConstant(view.value));
  for (auto [size, dim] : llvm::reverse(llvm::zip_equal(shape, view.dims))) {
    if (size == 1 || is_splat) continue;
    if (dim != dims.row && dim != dims.column) return std::nullopt;
    (dim == dims.row ? query_step : key_step) = step;
    step *= size;
  }
  const std::optional<nn::Tensor> tensor = evaluateConstant(view.value);
  if (!tensor) return std::nullopt;

  const int64_t queries = bias.scores.rows(), keys = bias.scores.columns();
  std::optional<int64_t> offset;
  bool hides_any = false;
  for (int64_t i = 0; i < queries; ++i) {
    int64_t seen = 0;
    for (int64_t j = 0; j < keys; ++j) {
      const std::optional<bool> hidden =
          hides(bias, *tensor, i * query_step + j * key_step);
      // Visible keys must be a run that begins with the first key.
      if (!hidden || (!*hidden && seen < j)) return std::nullopt;
      seen += !*hidden;
    }
    if (i == 0) offset = seen - 1;
    if (*offset < 0 || seen != std::min(keys, i + *offset + 1))
      return std::nullopt;
    hides_any |= seen < keys;
  }
  return ConstantMask{hides_any ? offset : std::nullopt};
}

}  // namespace partita::simplify
