// Looks through the operations that round a factor. Scales are not checked to
// be powers of two, with which the rounded factor equals scale * bytes.
#include "compiler/kernels/float8_factors.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace partita::kernels {
namespace {

namespace arith = mlir::arith;
using llvm::ArrayRef;
using mlir::Operation;
using mlir::RankedTensorType;
using mlir::Value;

// Tensor cores read 16 bytes of a row at a time.
constexpr int64_t kUnit = 16;

RankedTensorType typeOf(Value value) {
  return llvm::cast<RankedTensorType>(value.getType());
}

bool isE5M2(const Float8Factor& factor) {
  return llvm::isa<mlir::Float8E5M2Type>(typeOf(factor.bytes).getElementType());
}

// The floats of 8 bits that `value` widens to f32, or null.
Value widenedBytes(Value value) {
  auto widening = value.getDefiningOp<arith::ExtFOp>();
  if (!widening) return {};
  const Value bytes = widening.getIn();
  return llvm::isa<mlir::Float8E4M3FNType, mlir::Float8E5M2Type>(
             typeOf(bytes).getElementType())
             ? bytes
             : Value();
}

// The one f32 that `value` repeats, or null.
Value repeatedNumber(Value value) {
  auto broadcast = value.getDefiningOp<nn::BroadcastOp>();
  if (!broadcast) return {};
  const Value number = broadcast.getInput();
  return typeOf(number).getNumElements() == 1 &&
                 typeOf(number).getElementType().isF32()
             ? number
             : Value();
}

std::optional<Float8Factor> matchFactor(Value factor) {
  Float8Factor found;
  while (Operation* move = factor.getDefiningOp()) {
    if (!llvm::isa<nn::TransposeOp, nn::ReshapeOp>(move)) break;
    found.moves.push_back(move);
    factor = move->getOperand(0);
  }
  auto narrowing = factor.getDefiningOp<arith::TruncFOp>();
  if (!narrowing) return std::nullopt;
  auto scaling = narrowing.getIn().getDefiningOp<arith::MulFOp>();
  if (!scaling) return std::nullopt;
  for (const bool swapped : {false, true}) {
    found.bytes = widenedBytes(swapped ? scaling.getRhs() : scaling.getLhs());
    found.scale = repeatedNumber(swapped ? scaling.getLhs() : scaling.getRhs());
    if (found.bytes && found.scale) return found;
  }
  return std::nullopt;
}

// Sets the order and its sizes. Returns false if they are not aligned.
bool orderDims(Value value, ArrayRef<int64_t> contract, Float8Factor& factor) {
  for (int64_t dim = 0; dim < typeOf(value).getRank(); ++dim)
    if (!llvm::is_contained(contract, dim)) {
      factor.order.push_back(dim);
      factor.free *= typeOf(value).getDimSize(dim);
    }
  for (const int64_t dim : contract) {
    factor.order.push_back(dim);
    factor.contracted *= typeOf(value).getDimSize(dim);
  }
  return factor.free % kUnit == 0 && factor.contracted % kUnit == 0;
}

}  // namespace

std::optional<Float8Factors> matchFloat8Factors(nn::DotGeneralOp op) {
  if (!op.getLhsBatch().empty()) return std::nullopt;
  auto lhs = matchFactor(op.getLhs()), rhs = matchFactor(op.getRhs());
  if (!lhs || !rhs || (isE5M2(*lhs) && isE5M2(*rhs)) ||
      !orderDims(op.getLhs(), op.getLhsContract(), *lhs) ||
      !orderDims(op.getRhs(), op.getRhsContract(), *rhs))
    return std::nullopt;
  return Float8Factors{*std::move(lhs), *std::move(rhs)};
}

}  // namespace partita::kernels
