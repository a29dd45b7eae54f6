// The forms that importers and canonicalisation give to DequantizeLinear.
#include "compiler/simplify/dequantized.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace partita::simplify {
namespace {

using mlir::Value;
namespace arith = mlir::arith;

bool isByte(Value value) {
  return tensorType(value).getElementType().isInteger(8);
}

// Matches an i8 that is widened to a larger integer.
bool matchInteger(Value value, Dequantized& found) {
  if (auto extended = value.getDefiningOp<arith::ExtSIOp>()) {
    found.integer = extended.getIn();
  } else if (auto extended = value.getDefiningOp<arith::ExtUIOp>()) {
    found.integer = extended.getIn();
    found.is_unsigned = true;
  } else if (isByte(value)) {
    found.integer = value;
  }
  return found.integer && isByte(found.integer);
}

// The same, perhaps less a zero point.
bool matchDifference(Value value, Dequantized& found) {
  auto difference = value.getDefiningOp<arith::SubIOp>();
  if (!difference) return matchInteger(value, found);
  const Value zero = peel(operandOf(viewOf(value), 1)).value;
  const mlir::DenseElementsAttr splat = splatConstant(zero);
  if (!tensorType(zero).getElementType().isInteger(32) ||
      (!splat && tensorType(zero).getNumElements() != 1))
    return false;
  if (!splat || !splat.getSplatValue<llvm::APInt>().isZero()) found.zero = zero;
  return matchInteger(difference.getLhs(), found);
}

}  // namespace

bool matchSteps(Value value, Dequantized& found) {
  if (!tensorType(value).getElementType().isF32()) return false;
  bool matches = false;
  if (auto converted = value.getDefiningOp<arith::SIToFPOp>()) {
    matches = matchDifference(converted.getIn(), found);
  } else if (auto converted = value.getDefiningOp<arith::UIToFPOp>()) {
    matches = matchInteger(converted.getIn(), found);
    found.is_unsigned = true;
  }
  found.steps = value;
  return matches;
}

std::optional<Dequantized> matchDequantized(Value value) {
  auto product = value.getDefiningOp<arith::MulFOp>();
  if (!product) return std::nullopt;
  for (const unsigned operand : {0u, 1u}) {
    Dequantized found;
    if (!matchSteps(product->getOperand(operand), found)) continue;
    found.scale = peel(operandOf(viewOf(value), 1 - operand));
    return found;
  }
  return std::nullopt;
}

Value shrunk(mlir::OpBuilder& builder, mlir::Location loc, Value value) {
  mlir::DenseElementsAttr splat = splatConstant(value);
  if (!splat) return value;
  return arith::ConstantOp::create(
      builder, loc,
      splat.resizeSplat(
          mlir::RankedTensorType::get({}, splat.getElementType())));
}

}  // namespace partita::simplify
