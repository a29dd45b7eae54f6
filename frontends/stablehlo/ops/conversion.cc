// Constants, and conversions between element types.
#include "frontends/stablehlo/ops/ops.h"
#include "llvm/ADT/APFloat.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace partita::stablehlo {

namespace arith = mlir::arith;

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

namespace {

// The same bits as another type of the same width.
Val castBits(Emitter& e, Val x, ElementType type) {
  if (x.element() == type.type) return {x.value, type.is_unsigned};
  return {e.create<arith::BitcastOp>(e.tensor(x.shape(), type.type), x.value),
          type.is_unsigned};
}

// Elements of the last dimension as parts of one element, the first as its
// least significant bits.
Val joinParts(Emitter& e, Val x, ElementType wide) {
  const int64_t last = x.rank() - 1;
  const unsigned width = x.element().getIntOrFloatBitWidth();
  Val joined;
  for (int64_t i = 0; i < x.dim(last); ++i) {
    Val part = e.cast(
        e.reshape(e.sliceDim(x, last, i, 1), x.shape().drop_back()), wide);
    if (i > 0)
      part = {e.create<arith::ShLIOp>(part.value,
                                      e.splatLike(i * width, part).value),
              true};
    joined = joined ? e.bitOr(joined, part) : part;
  }
  return joined;
}

// The inverse: a new last dimension of parts.
Val splitParts(Emitter& e, Val x, ElementType narrow, int64_t count) {
  const unsigned width = narrow.type.getIntOrFloatBitWidth();
  Shape shape(x.shape());
  shape.push_back(1);
  Values parts;
  for (int64_t i = 0; i < count; ++i) {
    Val part = x;
    if (i > 0)
      part = {
          e.create<arith::ShRUIOp>(x.value, e.splatLike(i * width, x).value),
          true};
    parts.push_back(e.reshape(e.cast(part, narrow), shape));
  }
  return e.concat(parts, x.rank());
}

}  // namespace

// A type of another width adds or removes a last dimension.
Val importBitcast(OpContext& n) {
  const Val x = n.in(0);
  const ValueType type = n.result();
  if (n.failed()) return {};
  const unsigned from = x.element().getIntOrFloatBitWidth(),
                 to = type.element.type.getIntOrFloatBitWidth();
  if (from == to) return castBits(n.e, x, type.element);
  if (from == 1 || to == 1) return n.unsupported("the bits of booleans");
  const auto integer = [&](unsigned width) {
    return ElementType{n.e.builder().getIntegerType(width), true};
  };
  const Val bits = castBits(n.e, x, integer(from));
  if (from > to)
    return castBits(n.e, splitParts(n.e, bits, integer(to), from / to),
                    type.element);
  if (x.rank() == 0 || x.dim(x.rank() - 1) != to / from)
    return n.error("expected a last dimension of " + llvm::Twine(to / from) +
                   " parts, found " + toString(x.shape()));
  return castBits(n.e, joinParts(n.e, bits, integer(to)), type.element);
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
