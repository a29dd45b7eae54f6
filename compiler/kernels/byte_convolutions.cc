// Follows the operands of a convolution to integers that a model stores.
#include "compiler/kernels/byte_convolutions.h"

#include "dialects/nn/product_epilogue.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

namespace partita::kernels {
namespace {

namespace arith = mlir::arith;
using mlir::RankedTensorType;
using mlir::Value;

RankedTensorType typeOf(Value value) {
  return mlir::cast<RankedTensorType>(value.getType());
}

// The constant that repeats one number, or null.
mlir::DenseElementsAttr splatOf(Value value) {
  mlir::DenseElementsAttr constant;
  const bool is_constant =
      mlir::matchPattern(value, mlir::m_Constant(&constant));
  return is_constant && constant.isSplat() ? constant
                                           : mlir::DenseElementsAttr();
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
  if (auto transpose = value.getDefiningOp<nn::TransposeOp>()) {
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
  auto broadcast = found.zero.getDefiningOp<nn::BroadcastOp>();
  const bool repeats =
      mlir::matchPattern(found.zero, mlir::m_Constant(&constant))
          ? constant.isSplat()
          : broadcast && typeOf(broadcast.getInput()).getNumElements() == 1;
  return found.input && repeats;
}

}  // namespace

Value onlyElement(mlir::OpBuilder& builder, Value value) {
  mlir::DenseElementsAttr constant;
  if (mlir::matchPattern(value, mlir::m_Constant(&constant))) {
    if (!constant.isSplat()) return {};
    return arith::ConstantOp::create(builder, value.getLoc(),
                                     constant.resizeSplat(RankedTensorType::get(
                                         {}, constant.getElementType())));
  }
  if (typeOf(value).getNumElements() == 1) return value;
  auto broadcast = value.getDefiningOp<nn::BroadcastOp>();
  return broadcast && typeOf(broadcast.getInput()).getNumElements() == 1
             ? broadcast.getInput()
             : Value();
}

std::optional<ByteConvolution> matchByteConvolution(nn::ConvOp conv) {
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
  found.scale = splatOf(factor) ? factor : nn::channelVector(conv, factor);
  if (found.scale && !typeOf(found.scale).getElementType().isF32())
    found.scale = {};
  if (found.scale) found.scaling = scaling;
  return found;
}

exec::ConvOp buildByteConvolution(nn::ConvOp conv,
                                  const ByteConvolution& found) {
  mlir::OpBuilder builder(found.scaling ? found.scaling : conv);
  const mlir::Location loc = conv.getLoc();
  Value input = found.input, scale = found.scale;
  if (!found.perm.empty())
    input = nn::TransposeOp::create(builder, loc, input, found.perm);
  const auto channels = RankedTensorType::get(
      {typeOf(conv.getWeight()).getDimSize(0)}, builder.getF32Type());
  mlir::DenseElementsAttr factor = scale ? splatOf(scale) : nullptr;
  // A partial sum is scaled after a collective.
  if (!scale)
    factor = mlir::DenseElementsAttr::get(channels, builder.getF32FloatAttr(1));
  if (factor)
    scale =
        arith::ConstantOp::create(builder, loc, factor.resizeSplat(channels));
  return exec::ConvOp::create(
      builder, loc, conv.getType(), input, found.weight, scale,
      found.zero ? onlyElement(builder, found.zero) : Value(),
      /*bias=*/Value(), /*residual=*/Value(), /*result_scale=*/Value(),
      /*result_zero=*/Value(), found.input_unsigned,
      /*result_unsigned=*/false, conv.getStrides(), conv.getDilations(),
      conv.getLow(), conv.getHigh(), conv.getGroups(), conv.getChannelsLast(),
      exec::ConvDirection::kForward, exec::Activation::kNone);
}

}  // namespace partita::kernels
