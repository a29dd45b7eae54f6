// Casts between element types.
#include "frontends/onnx/ops/ops.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace partita::onnx {
namespace {

bool isFloat8(mlir::Type type) {
  auto float_type = mlir::dyn_cast<mlir::FloatType>(type);
  return float_type && float_type.getWidth() <= 8;
}

// Casts to 8 bits or less. A value that is too large becomes the largest value
// or, without saturation, the format's overflow value.
Val castToFloat8(NodeContext& n, Val x, mlir::FloatType to, bool saturate) {
  if (!x.isFloat() || isFloat8(x.element())) x = n.e.cast(x, n.e.f32());
  bool always = to.getWidth() < 8;  // 4 bits have neither infinity nor NaN
  if (!saturate && !always) return n.e.cast(x, to);
  llvm::APFloat largest = llvm::APFloat::getLargest(to.getFloatSemantics());
  bool loses;
  largest.convert(llvm::APFloat::IEEEdouble(),
                  llvm::APFloat::rmNearestTiesToEven, &loses);
  double limit = largest.convertToDouble();
  return n.e.cast(n.e.minimum(n.e.maximum(x, -limit), limit), to);
}

}  // namespace

LogicalResult castTo(NodeContext& n, Val x, ElementType to) {
  if (isFloat8(to.type) && to.type != x.element()) {
    if (mlir::isa<mlir::Float8E8M0FNUType>(to.type))
      return n.unsupported("to=FLOAT8E8M0");
    return n.result(castToFloat8(n, x, mlir::cast<mlir::FloatType>(to.type),
                                 n.attrInt("saturate", 1)));
  }
  return n.result(n.e.cast(x, to));
}

LogicalResult importCast(NodeContext& n) {
  if (!n.hasAttr("to")) return n.error("expected attribute 'to'");
  auto type = n.elementType(n.attrInt("to", 0));
  if (failed(type)) return failure();
  return castTo(n, n.in(0), *type);
}

LogicalResult importCastLike(NodeContext& n) {
  return castTo(n, n.in(0), n.in(1).elementType());
}

LogicalResult importBitCast(NodeContext& n) {
  Val x = n.in(0);
  auto type = n.elementType(n.attrInt("to", 0));
  if (failed(type)) return failure();
  // A bool is a byte, 0 or 1.
  if (x.isBool() && type->type.isInteger(8)) {
    return n.result(n.e.cast(x, *type));
  }
  if (type->type.getIntOrFloatBitWidth() !=
      x.element().getIntOrFloatBitWidth()) {
    return n.error("expected a type of the same width");
  }
  if (type->type == x.element()) return n.result({x.value, type->is_unsigned});
  mlir::Value value = n.e.create<mlir::arith::BitcastOp>(
      n.e.tensor(x.shape(), type->type), x.value);
  return n.result({value, type->is_unsigned});
}

}  // namespace partita::onnx
