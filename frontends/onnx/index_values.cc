#include "frontends/onnx/index_values.h"

#include "dialects/nn/tensor.h"
#include "llvm/ADT/STLExtras.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

namespace partita::onnx {
namespace {

namespace arith = mlir::arith;
using Integers = std::optional<std::vector<int64_t>>;

Dims shapeOf(mlir::Value value) {
  return mlir::cast<mlir::RankedTensorType>(value.getType()).getShape();
}

class Reader {
 public:
  Reader(int64_t count, const Placeholder& placeholder)
      : count_(count), placeholder_(placeholder) {}

  Integers read(mlir::Value value, Dims index) {
    if (value == placeholder_.value) return placeholder(index);
    mlir::DenseElementsAttr constant;
    if (mlir::matchPattern(value, mlir::m_Constant(&constant)))
      return readConstant(constant, index);
    mlir::Operation* op = value.getDefiningOp();
    if (!op) return std::nullopt;
    if (auto iota = mlir::dyn_cast<nn::IotaOp>(op))
      return iota.getType().getDimSize(iota.getDim()) == 1
                 ? all(0)
                 : along(index[iota.getDim()]);
    if (auto reshape = mlir::dyn_cast<nn::ReshapeOp>(op))
      return readReshape(reshape, index);
    if (auto slice = mlir::dyn_cast<nn::SliceOp>(op))
      return readSlice(slice, index);
    if (auto transpose = mlir::dyn_cast<nn::TransposeOp>(op)) {
      Shape inner(index.size());
      for (auto [i, dim] : llvm::enumerate(transpose.getPerm()))
        inner[dim] = index[i];
      return read(transpose.getInput(), inner);
    }
    if (auto broadcast = mlir::dyn_cast<nn::BroadcastOp>(op)) {
      Shape inner;
      for (auto [i, dim] : llvm::enumerate(broadcast.getDims()))
        inner.push_back(shapeOf(broadcast.getInput())[i] == 1 ? 0 : index[dim]);
      return read(broadcast.getInput(), inner);
    }
    if (auto concat = mlir::dyn_cast<nn::ConcatOp>(op))
      return readConcat(concat, index);
    return op->hasTrait<mlir::OpTrait::Elementwise>() ? compute(op, index)
                                                      : std::nullopt;
  }

 private:
  std::vector<int64_t> all(int64_t number) const {
    return std::vector<int64_t>(count_, number);
  }

  // The numbers of a dimension's index.
  Integers along(int64_t index) const {
    if (index == kAny) return std::nullopt;
    std::vector<int64_t> values = all(index);
    if (index == kRunning)
      for (int64_t i = 0; i < count_; ++i) values[i] = i;
    return values;
  }

  Integers placeholder(Dims index) const {
    if (index[0] < 0 || index[1] == kAny) return std::nullopt;
    Integers values = along(index[1]);
    for (int64_t& value : *values)
      value = nn::indexAt(placeholder_.grid, value)[index[0]];
    return values;
  }

  Integers readConstant(mlir::DenseElementsAttr constant, Dims index) const {
    if (!constant.getElementType().isInteger()) return std::nullopt;
    const nn::Tensor tensor = nn::Tensor::fromAttr(
        constant.isSplat() ? constant.resizeSplat(mlir::RankedTensorType::get(
                                 {1}, constant.getElementType()))
                           : constant);
    if (constant.isSplat()) return all(tensor.getInt(0));
    std::vector<std::optional<int64_t>> found(count_);
    for (int64_t position = 0; position < tensor.size(); ++position) {
      const Shape place = tensor.index(position);
      int64_t step = 0;
      bool is_read = true;
      for (auto [at, wanted] : llvm::zip(place, index)) {
        if (wanted == kRunning) step = at;
        is_read &= wanted < 0 || wanted == at;
      }
      if (!is_read || step >= count_) continue;
      const int64_t number = tensor.getInt(position);
      const bool is_running = llvm::is_contained(index, kRunning);
      for (int64_t i = is_running ? step : 0;
           i < (is_running ? step + 1 : count_); ++i) {
        if (found[i] && *found[i] != number) return std::nullopt;
        found[i] = number;
      }
    }
    std::vector<int64_t> values;
    for (std::optional<int64_t> number : found) {
      if (!number) return std::nullopt;
      values.push_back(*number);
    }
    return values;
  }

  // Only dimensions of size 1 come or go.
  Integers readReshape(nn::ReshapeOp reshape, Dims index) {
    Shape sizes, kept, inner;
    for (auto [dim, size] : llvm::enumerate(reshape.getType().getShape())) {
      if (size == 1) continue;
      sizes.push_back(size);
      kept.push_back(index[dim]);
    }
    size_t next = 0;
    for (int64_t size : shapeOf(reshape.getInput())) {
      if (size == 1) {
        inner.push_back(0);
        continue;
      }
      if (next == sizes.size() || sizes[next] != size) return std::nullopt;
      inner.push_back(kept[next++]);
    }
    return next == sizes.size() ? read(reshape.getInput(), inner)
                                : std::nullopt;
  }

  Integers readSlice(nn::SliceOp slice, Dims index) {
    Shape inner(index);
    for (auto [dim, size] : llvm::enumerate(slice.getType().getShape())) {
      const int64_t start = slice.getStarts()[dim],
                    stride = slice.getStrides()[dim];
      if (size == 1)
        inner[dim] = start;
      else if (inner[dim] >= 0)
        inner[dim] = start + inner[dim] * stride;
      else if (start != 0 || stride != 1)
        return std::nullopt;
    }
    return read(slice.getInput(), inner);
  }

  Integers readConcat(nn::ConcatOp concat, Dims index) {
    Shape inner(index);
    int64_t& at = inner[concat.getAxis()];
    if (at < 0) return std::nullopt;
    for (mlir::Value part : concat.getInputs()) {
      const int64_t size = shapeOf(part)[concat.getAxis()];
      if (at < size) return read(part, inner);
      at -= size;
    }
    return std::nullopt;
  }

  Integers compute(mlir::Operation* op, Dims index) {
    std::vector<std::vector<int64_t>> operands;
    for (mlir::Value operand : op->getOperands()) {
      Integers values = read(operand, index);
      if (!values) return std::nullopt;
      operands.push_back(std::move(*values));
    }
    std::vector<int64_t> values;
    for (int64_t i = 0; i < count_; ++i) {
      const auto x = [&](int operand) { return operands[operand][i]; };
      if (mlir::isa<arith::AddIOp>(op)) {
        values.push_back(x(0) + x(1));
      } else if (mlir::isa<arith::SubIOp>(op)) {
        values.push_back(x(0) - x(1));
      } else if (mlir::isa<arith::MulIOp>(op)) {
        values.push_back(x(0) * x(1));
      } else if (mlir::isa<arith::SelectOp>(op)) {
        values.push_back(x(0) ? x(1) : x(2));
      } else if (mlir::isa<arith::ExtSIOp, arith::TruncIOp>(op)) {
        values.push_back(x(0));
      } else if (auto compare = mlir::dyn_cast<arith::CmpIOp>(op);
                 compare &&
                 compare.getPredicate() == arith::CmpIPredicate::slt) {
        values.push_back(x(0) < x(1));
      } else {
        return std::nullopt;
      }
    }
    return values;
  }

  const int64_t count_;
  const Placeholder& placeholder_;
};

}  // namespace

std::optional<std::vector<int64_t>> indexValues(
    mlir::Value value, Dims index, int64_t count,
    const Placeholder& placeholder) {
  return Reader(count, placeholder).read(value, index);
}

}  // namespace partita::onnx
