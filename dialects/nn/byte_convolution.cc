// Follows the operands of a convolution to integers that a model stores.
#include "dialects/nn/byte_convolution.h"

#include "dialects/nn/product_epilogue.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

namespace partita::nn {
namespace {

namespace arith = mlir::arith;
using mlir::RankedTensorType;
using mlir::Value;

RankedTensorType typeOf(Value value) {
  return mlir::cast<RankedTensorType>(value.getType());
}

// The i8 that `value`, an i32 or an f32, widens, or null.
Value narrowed(Value value, bool& is_unsigned) {
  mlir::Operation* op = value.getDefiningOp();
  if (!mlir::isa_and_present<arith::ExtSIOp, arith::ExtUIOp, arith::SIToFPOp,
                             arith::UIToFPOp>(op))
    return {};
  const Value input = op->getOperand(0);
  if (typeOf(input).getElementType().isInteger(8)) {
    is_unsigned = mlir::isa<arith::ExtUIOp, arith::UIToFPOp>(op);
    return input;
  }
  // Other unsigned integers may not be what the extension made.
  return mlir::isa<arith::SIToFPOp>(op) ? narrowed(input, is_unsigned)
                                        : Value();
}

bool matchInput(Value value, ByteConvolution& found) {
  if (auto transpose = value.getDefiningOp<TransposeOp>()) {
    found.perm = llvm::to_vector(transpose.getPerm());
    value = transpose.getInput();
  }
  found.input = narrowed(value, found.input_unsigned);
  if (found.input) return true;
  auto converted = value.getDefiningOp<arith::SIToFPOp>();
  auto difference =
      converted ? converted.getIn().getDefiningOp<arith::SubIOp>() : nullptr;
  if (!difference || !typeOf(difference).getElementType().isInteger(32))
    return false;
  found.input = narrowed(difference.getLhs(), found.input_unsigned);
  found.zero = difference.getRhs();
  mlir::DenseElementsAttr constant;
  auto broadcast = found.zero.getDefiningOp<BroadcastOp>();
  const bool repeats =
      mlir::matchPattern(found.zero, mlir::m_Constant(&constant))
          ? constant.isSplat()
          : broadcast && typeOf(broadcast.getInput()).getNumElements() == 1;
  return found.input && repeats;
}

}  // namespace

mlir::DenseElementsAttr splatOf(Value value) {
  mlir::DenseElementsAttr constant;
  const bool is_constant =
      mlir::matchPattern(value, mlir::m_Constant(&constant));
  return is_constant && constant.isSplat() ? constant
                                           : mlir::DenseElementsAttr();
}

std::optional<ByteConvolution> matchByteConvolution(ConvOp conv) {
  if (!conv.getType().getElementType().isF32()) return std::nullopt;
  ByteConvolution found;
  bool is_weight_unsigned = false;
  found.weight = narrowed(conv.getWeight(), is_weight_unsigned);
  if (!found.weight || is_weight_unsigned ||
      !matchInput(conv.getInput(), found))
    return std::nullopt;
  if (!conv->hasOneUse()) return found;
  auto scaling = mlir::dyn_cast<arith::MulFOp>(*conv->user_begin());
  if (!scaling || scaling.getLhs() == scaling.getRhs()) return found;
  const Value factor = scaling.getLhs() == conv.getResult() ? scaling.getRhs()
                                                            : scaling.getLhs();
  found.scale = splatOf(factor) ? factor : channelVector(conv, factor);
  if (found.scale && !typeOf(found.scale).getElementType().isF32())
    found.scale = {};
  if (found.scale) found.scaling = scaling;
  return found;
}

}  // namespace partita::nn
