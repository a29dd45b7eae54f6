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
  const auto same = [&](mlir::FloatType type, int64_t bits) {
    return exponent == bits &&
           mantissa == static_cast<int64_t>(type.getFPMantissaWidth()) - 1;
  };
  mlir::Builder& b = n.e.builder();
  for (auto [type, bits] :
       {std::pair<mlir::FloatType, int64_t>{b.getF16Type(), 5},
        {b.getBF16Type(), 8},
        {b.getF32Type(), 8},
        {b.getF64Type(), 11}})
    if (same(type, bits))
      return type.getWidth() >= x.element().getIntOrFloatBitWidth()
                 ? x
                 : n.e.cast(n.e.cast(x, type), x.elementType());
  return n.unsupported("a format of " + llvm::Twine(exponent) + " and " +
                       llvm::Twine(mantissa) + " bits");
}

}  // namespace partita::stablehlo
