// Constants, and conversions between element types.
#include "frontends/stablehlo/ops/ops.h"
#include "llvm/ADT/APFloat.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace partita::stablehlo {

Val importConstant(OpContext& n) {
  const ValueType type = n.result();
  auto value = n.op.getAttrOfType<mlir::DenseElementsAttr>("value");
  if (n.failed()) return {};
  if (!value) return n.error("expected a dense value");
  const ValueType found = valueType(value.getType());
  if (!(found.element == type.element) || found.shape != type.shape)
    return n.error("expected a value of the result's type");
  if (type.element.is_unsigned) value = value.bitcast(type.element.type);
  return n.e.constant(value, type.element.is_unsigned);
}

Val importConvert(OpContext& n) {
  const Val x = n.in(0);
  const ElementType type = n.result().element;
  return n.failed() ? Val() : n.e.cast(x, type);
}

Val importBitcast(OpContext& n) {
  const Val x = n.in(0);
  const ValueType type = n.result();
  if (n.failed()) return {};
  if (x.element().getIntOrFloatBitWidth() !=
      type.element.type.getIntOrFloatBitWidth())
    return n.unsupported("a change of the number of bits");
  if (x.element() == type.element.type)
    return {x.value, type.element.is_unsigned};
  return {n.e.create<mlir::arith::BitcastOp>(
              n.e.tensor(x.shape(), type.element.type), x.value),
          type.element.is_unsigned};
}

Val importReducePrecision(OpContext& n) {
  const Val x = n.in(0);
  const int64_t exponent = n.integer("exponent_bits"),
                mantissa = n.integer("mantissa_bits");
  if (n.failed()) return {};
  if (!x.isFloat()) return n.unsupported(toString(x.elementType()));
  const auto exponentOf = [](mlir::Type type) -> int64_t {
    return type.isF16() ? 5 : type.isF64() ? 11 : 8;
  };
  const auto mantissaOf = [](mlir::Type type) -> int64_t {
    return mlir::cast<mlir::FloatType>(type).getFPMantissaWidth() - 1;
  };
  // A format that holds all of x's numbers.
  if (exponent >= exponentOf(x.element()) &&
      mantissa >= mantissaOf(x.element()))
    return x;
  mlir::Builder& b = n.e.builder();
  for (mlir::FloatType type :
       {mlir::FloatType(b.getF16Type()), mlir::FloatType(b.getBF16Type()),
        mlir::FloatType(b.getF32Type())})
    if (exponent == exponentOf(type) && mantissa == mantissaOf(type) &&
        type.getWidth() < x.element().getIntOrFloatBitWidth())
      return n.e.cast(n.e.cast(x, type), x.elementType());
  return n.unsupported("rounding " + toString(x.elementType()) +
                       " to a format of " + llvm::Twine(exponent) + " and " +
                       llvm::Twine(mantissa) + " bits");
}

}  // namespace partita::stablehlo
