// Builds calls of convolutions of integers.
#include "compiler/kernels/byte_convolutions.h"

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

exec::ConvOp buildByteConvolution(nn::ConvOp conv,
                                  const nn::ByteConvolution& found) {
  mlir::OpBuilder builder(found.scaling ? found.scaling : conv);
  const mlir::Location loc = conv.getLoc();
  Value input = found.input, scale = found.scale;
  if (!found.perm.empty())
    input = nn::TransposeOp::create(builder, loc, input, found.perm);
  const auto channels = RankedTensorType::get(
      {typeOf(conv.getWeight()).getDimSize(0)}, builder.getF32Type());
  mlir::DenseElementsAttr factor = scale ? nn::splatOf(scale) : nullptr;
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
