// Rounding to integers of 8 bits that the convolution library computes on the
// way; see passes.td.
#include <optional>

#include "compiler/kernels/byte_convolutions.h"
#include "compiler/kernels/passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"

namespace partita::kernels {

#define GEN_PASS_DEF_FUSEROUNDINGPASS
#include "compiler/kernels/passes.h.inc"

namespace {

namespace arith = mlir::arith;
using mlir::Operation;
using mlir::RankedTensorType;
using mlir::Value;

RankedTensorType typeOf(Value value) {
  return llvm::cast<RankedTensorType>(value.getType());
}

std::optional<double> splatOf(Value value) {
  mlir::DenseFPElementsAttr constant;
  if (!mlir::matchPattern(value, mlir::m_Constant(&constant)) ||
      !constant.isSplat())
    return std::nullopt;
  return constant.getSplatValue<llvm::APFloat>().convertToDouble();
}

// The Op that is the only user of `value`.
template <typename Op>
Op onlyUser(Value value) {
  return value.hasOneUse() ? llvm::dyn_cast<Op>(*value.user_begin()) : Op();
}

Value otherOperand(Operation* op, Value value) {
  return op->getOperand(op->getOperand(0) == value ? 1 : 0);
}

// saturate(round(value / scale) + zero), and its operations in order.
struct Rounding {
  llvm::SmallVector<Operation*> operations;
  Value divisor;  // or
  double factor = 1;
  Value zero;  // as floats; null: 0
  bool is_unsigned = false;
};

std::optional<Rounding> roundingOf(Value value) {
  Rounding found;
  const auto take = [&](Operation* op) {
    found.operations.push_back(op);
    value = op->getResult(0);
  };
  if (auto division = onlyUser<arith::DivFOp>(value)) {
    if (division.getLhs() != value) return std::nullopt;
    found.divisor = division.getRhs();
    take(division);
  } else if (auto product = onlyUser<arith::MulFOp>(value)) {
    const std::optional<double> factor = splatOf(otherOperand(product, value));
    if (!factor || !(*factor > 0)) return std::nullopt;
    found.factor = *factor;
    take(product);
  }
  auto rounded = onlyUser<mlir::math::RoundEvenOp>(value);
  if (!rounded) return std::nullopt;
  take(rounded);
  if (auto moved = onlyUser<arith::AddFOp>(value)) {
    found.zero = otherOperand(moved, value);
    take(moved);
  }
  std::optional<double> low, high;
  for (int i = 0; i < 2; ++i) {
    if (auto raised = onlyUser<arith::MaximumFOp>(value); raised && !low) {
      low = splatOf(otherOperand(raised, value));
      take(raised);
    } else if (auto lowered = onlyUser<arith::MinimumFOp>(value);
               lowered && !high) {
      high = splatOf(otherOperand(lowered, value));
      take(lowered);
    }
  }
  found.is_unsigned = low == 0.0 && high == 255.0;
  if (!found.is_unsigned && !(low == -128.0 && high == 127.0))
    return std::nullopt;
  Operation* stored = onlyUser<arith::FPToUIOp>(value);
  if (!found.is_unsigned) stored = onlyUser<arith::FPToSIOp>(value);
  if (!stored || !typeOf(stored->getResult(0)).getElementType().isInteger(8))
    return std::nullopt;
  take(stored);
  return found;
}

class FuseRounding : public impl::FuseRoundingPassBase<FuseRounding> {
 public:
  void runOnOperation() override {
    llvm::SmallVector<exec::ConvOp> convolutions;
    getOperation().walk([&](exec::ConvOp op) {
      if (op.getScale() && !op.getResidual() && !op.getResultScale())
        convolutions.push_back(op);
    });
    for (exec::ConvOp conv : convolutions)
      if (const auto rounding = roundingOf(conv.getResult()))
        fuse(conv, *rounding);
  }

 private:
  void fuse(exec::ConvOp conv, const Rounding& rounding) {
    Operation* const last = rounding.operations.back();
    mlir::OpBuilder builder(last);
    const Value scale = divisorOf(builder, last, rounding),
                zero = zeroOf(builder, last, rounding);
    if (!scale || !zero) return;
    conv->moveBefore(last);
    conv.getResultScaleMutable().assign(scale);
    conv.getResultZeroMutable().assign(zero);
    conv.setResultUnsigned(rounding.is_unsigned);
    const mlir::Type type = last->getResult(0).getType();
    last->getResult(0).replaceAllUsesWith(conv.getResult());
    for (Operation* op : llvm::reverse(rounding.operations)) op->erase();
    conv.getResult().setType(llvm::cast<RankedTensorType>(type));
    ++rounded;
  }

  static Value divisorOf(mlir::OpBuilder& builder, Operation* last,
                         const Rounding& rounding) {
    if (rounding.divisor) return onlyElement(builder, rounding.divisor);
    const auto type = RankedTensorType::get({}, builder.getF32Type());
    return arith::ConstantOp::create(
        builder, last->getLoc(),
        mlir::DenseElementsAttr::get(
            type,
            builder.getF32FloatAttr(static_cast<float>(1 / rounding.factor))));
  }

  // The zero point as i32, or null if it is no known integer.
  static Value zeroOf(mlir::OpBuilder& builder, Operation* last,
                      const Rounding& rounding) {
    const std::optional<double> constant =
        rounding.zero ? splatOf(rounding.zero) : 0.0;
    if (constant) {
      if (!(*constant >= -128 && *constant <= 255)) return {};
      const auto zero = static_cast<int32_t>(*constant);
      if (zero != *constant) return {};
      const auto type = RankedTensorType::get({}, builder.getI32Type());
      return arith::ConstantOp::create(
          builder, last->getLoc(),
          mlir::DenseElementsAttr::get(type, builder.getI32IntegerAttr(zero)));
    }
    const Value one = onlyElement(builder, rounding.zero);
    auto converted = one ? one.getDefiningOp<arith::SIToFPOp>() : nullptr;
    if (!converted) return {};
    return typeOf(converted.getIn()).getElementType().isInteger(32)
               ? converted.getIn()
               : Value();
  }
};

}  // namespace
}  // namespace partita::kernels
