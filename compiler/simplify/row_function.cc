// Evaluates operations by their references, with another number of rows.
#include "compiler/simplify/row_function.h"

#include "compiler/simplify/view.h"
#include "dialects/nn/dialect.h"
#include "llvm/ADT/DenseMap.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

namespace partita::simplify {
namespace {

using mlir::Operation;
using mlir::RankedTensorType;
using mlir::SmallVector;
using mlir::Value;
using nn::Tensor;

class Evaluation {
 public:
  Evaluation(Value leaf, int64_t count)
      : leaf_(leaf), rows_(tensorType(leaf).getDimSize(0)), count_(count) {}

  const Tensor* valueOf(Value value) {
    auto known = known_.find(value);
    if (known != known_.end()) return known->second ? &*known->second : nullptr;
    std::optional<Tensor> made = value == leaf_ ? leafRows() : make(value);
    auto [place, inserted] = known_.try_emplace(value, std::move(made));
    return place->second ? &*place->second : nullptr;
  }

 private:
  // The type with `count_` rows, if dimension 0 has rows.
  RankedTensorType typeOf(RankedTensorType type) const {
    if (type.getRank() == 0 || type.getDimSize(0) != rows_) return type;
    SmallVector<int64_t> shape(type.getShape());
    shape[0] = count_;
    return type.clone(shape);
  }

  std::optional<Tensor> leafRows() const {
    Tensor rows(typeOf(tensorType(leaf_)));
    for (int64_t i = 0; i < count_; ++i) rows.setInt(i, i);
    return rows;
  }

  std::optional<Tensor> make(Value value) {
    mlir::DenseElementsAttr constant;
    if (mlir::matchPattern(value, mlir::m_Constant(&constant)))
      return ofConstant(constant);
    Operation* op = value.getDefiningOp();
    if (!op || op->getNumResults() != 1 || !isRowwise(op)) return std::nullopt;
    SmallVector<Tensor> operands;
    mlir::Block block;
    SmallVector<Value> arguments;
    for (Value operand : op->getOperands()) {
      const Tensor* tensor = valueOf(operand);
      if (!tensor) return std::nullopt;
      operands.push_back(*tensor);
      arguments.push_back(block.addArgument(tensor->type(), op->getLoc()));
    }
    Operation* local = op->clone();
    block.push_back(local);
    local->setOperands(arguments);
    local->getResult(0).setType(typeOf(tensorType(value)));
    auto results =
        mlir::cast<nn::ReferenceOpInterface>(local).evaluate(operands);
    if (mlir::failed(results)) return std::nullopt;
    return std::move(results->front());
  }

  std::optional<Tensor> ofConstant(mlir::DenseElementsAttr constant) const {
    auto type = mlir::dyn_cast<RankedTensorType>(constant.getType());
    if (!type || !type.getElementType().isIntOrFloat()) return std::nullopt;
    const RankedTensorType wanted = typeOf(type);
    if (wanted == type) return Tensor::fromAttr(constant);
    if (!hasEqualRows(constant)) return std::nullopt;
    const Tensor all = Tensor::fromAttr(constant);
    Tensor rows(wanted);
    const int64_t width = all.size() / rows_;
    for (int64_t i = 0; i < rows.size(); ++i) rows.copyFrom(i, all, i % width);
    return rows;
  }

  bool isRowwise(Operation* op) const {
    if (!mlir::isa<nn::ReferenceOpInterface>(op)) return false;
    if (op->hasTrait<mlir::OpTrait::Elementwise>()) return true;
    if (auto iota = mlir::dyn_cast<nn::IotaOp>(op)) return iota.getDim() > 0;
    // A dimension of rows stays in front, or there is none.
    if (auto broadcast = mlir::dyn_cast<nn::BroadcastOp>(op)) {
      const auto input = broadcast.getInput().getType();
      return input.getRank() == 0 || input.getDimSize(0) != rows_ ||
             broadcast.getDims()[0] == 0;
    }
    if (auto reshape = mlir::dyn_cast<nn::ReshapeOp>(op)) {
      const auto input = reshape.getInput().getType(),
                 result = reshape.getType();
      return input.getRank() > 0 && result.getRank() > 0 &&
             input.getDimSize(0) == rows_ && result.getDimSize(0) == rows_;
    }
    return false;
  }

  Value leaf_;
  int64_t rows_, count_;
  llvm::DenseMap<Value, std::optional<Tensor>> known_;
};

}  // namespace

bool hasEqualRows(mlir::DenseElementsAttr constant) {
  auto type = mlir::dyn_cast<RankedTensorType>(constant.getType());
  if (!type || type.getRank() == 0 || !type.getElementType().isIntOrFloat())
    return false;
  if (constant.isSplat()) return true;
  const Tensor all = Tensor::fromAttr(constant);
  const int64_t width = all.size() / type.getDimSize(0);
  for (int64_t i = width; i < all.size(); ++i) {
    if (all.isFloat() ? all.getFloat(i) != all.getFloat(i % width)
                      : all.getInt(i) != all.getInt(i % width))
      return false;
  }
  return true;
}

std::optional<nn::Tensor> evaluateRows(Value value, Value leaf, int64_t count) {
  const RankedTensorType type = tensorType(leaf);
  if (type.getRank() != 1 || !type.getElementType().isInteger())
    return std::nullopt;
  const RankedTensorType result = tensorType(value);
  if (result.getRank() == 0 || result.getDimSize(0) != type.getDimSize(0))
    return std::nullopt;
  Evaluation evaluation(leaf, count);
  const Tensor* rows = evaluation.valueOf(value);
  if (!rows) return std::nullopt;
  return *rows;
}

}  // namespace partita::simplify
