// Matches convolutions with a bias, and scales the weights of a convolution.
#include "compiler/simplify/scaled_conv.h"

#include "compiler/simplify/view.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"

namespace partita::simplify {

using mlir::OpBuilder;
using mlir::Value;
namespace arith = mlir::arith;

Value vectorAlong(OpBuilder& builder, Value value, int64_t dim) {
  const int64_t size = tensorType(value).getDimSize(dim);
  if (mlir::DenseElementsAttr splat = splatConstant(value)) {
    const auto type =
        mlir::RankedTensorType::get({size}, splat.getElementType());
    return arith::ConstantOp::create(builder, value.getLoc(),
                                     splat.resizeSplat(type));
  }
  const View view = peel(viewOf(value));
  if (view.largeDims() != mlir::SmallVector<int64_t>{dim}) return {};
  return buildReshape(builder, value.getLoc(), view.value, {size});
}

int64_t ConvWithBias::feature() {
  return conv.getChannelsLast() ? conv.getType().getRank() - 1 : 1;
}

std::optional<ConvWithBias> ConvWithBias::match(OpBuilder& builder,
                                                Value value) {
  if (!value.hasOneUse()) return std::nullopt;
  if (auto conv = value.getDefiningOp<nn::ConvOp>())
    return ConvWithBias{conv, Value()};
  auto add = value.getDefiningOp<arith::AddFOp>();
  if (!add) return std::nullopt;
  for (unsigned operand : {0u, 1u}) {
    std::optional<ConvWithBias> conv = match(builder, add->getOperand(operand));
    if (!conv || conv->bias) continue;
    conv->bias =
        vectorAlong(builder, add->getOperand(1 - operand), conv->feature());
    if (conv->bias) return conv;
  }
  return std::nullopt;
}

nn::ConvOp buildScaledConv(OpBuilder& builder, nn::ConvOp conv, Value scale) {
  const Value factors = nn::BroadcastOp::create(
      builder, scale.getLoc(), conv.getWeight().getType(), scale,
      llvm::ArrayRef<int64_t>{0});
  const Value weight =
      arith::MulFOp::create(builder, scale.getLoc(), conv.getWeight(), factors);
  mlir::IRMapping mapping;
  mapping.map(conv.getWeight(), weight);
  return mlir::cast<nn::ConvOp>(builder.clone(*conv, mapping));
}

}  // namespace partita::simplify
