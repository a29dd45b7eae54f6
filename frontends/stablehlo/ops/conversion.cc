// Constants, and conversions between element types.
#include <cmath>

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

namespace {

int64_t exponentOf(mlir::Type type) {
  return type.isF16() ? 5 : type.isF64() ? 11 : 8;
}

int64_t mantissaOf(mlir::Type type) {
  return mlir::cast<mlir::FloatType>(type).getFPMantissaWidth() - 1;
}

// Rounds the bits of floats to a format with fewer of them, as XLA does:
// numbers below the format's normal ones become 0, those above infinite.
Val roundBits(Emitter& e, Val x, int64_t exponent, int64_t mantissa) {
  const int64_t own_exponent = exponentOf(x.element()),
                own_mantissa = mantissaOf(x.element());
  const unsigned width = x.element().getIntOrFloatBitWidth();
  const ElementType type = {e.builder().getIntegerType(width), true};
  const auto constant = [&](const llvm::APInt& value) {
    return e.constant(
        mlir::DenseElementsAttr::get(e.tensor({}, type.type), value), true);
  };
  const auto low = [&](unsigned bits) {
    return llvm::APInt::getLowBitsSet(width, bits);
  };
  Val bits = castBits(e, x, type);
  if (mantissa < own_mantissa) {
    // To the nearest, and to the even one of two.
    const auto dropped = static_cast<unsigned>(own_mantissa - mantissa);
    const Val last = e.bitAnd(
        Val{e.create<arith::ShRUIOp>(
                bits.value,
                e.broadcast(constant(llvm::APInt(width, dropped)), x.shape())
                    .value),
            true},
        constant(llvm::APInt(width, 1)));
    bits = e.add(bits, e.add(last, constant(low(dropped - 1))));
    bits = e.bitAnd(bits, constant(~low(dropped)));
  }
  if (exponent < own_exponent) {
    const auto bias = [](int64_t of) { return (int64_t{1} << (of - 1)) - 1; };
    const auto place = [&](int64_t number) {
      return constant(llvm::APInt(width, number) << own_mantissa);
    };
    const llvm::APInt all = low(static_cast<unsigned>(own_exponent))
                            << own_mantissa;
    const Val found = e.bitAnd(bits, constant(all));
    const Val sign = e.bitAnd(bits, constant(llvm::APInt::getSignMask(width)));
    const int64_t middle = bias(own_exponent), reach = bias(exponent);
    bits = e.select(e.compare(Compare::gt, found, place(middle + reach)),
                    e.bitOr(sign, constant(all)), bits);
    bits = e.select(e.compare(Compare::le, found, place(middle - reach)), sign,
                    bits);
  }
  // NaN stays NaN. A format without a mantissa has none: +inf, as in XLA.
  const Val rounded = castBits(e, bits, x.elementType());
  const Val nan = mantissa == 0 ? e.splat(INFINITY, x.elementType()) : x;
  return e.select(e.compare(Compare::ne, x, x), nan, rounded);
}

}  // namespace

Val importReducePrecision(OpContext& n) {
  const Val x = n.in(0);
  const int64_t exponent = n.integer("exponent_bits"),
                mantissa = n.integer("mantissa_bits");
  if (n.failed()) return {};
  if (!x.isFloat()) return n.unsupported(toString(x.elementType()));
  if (exponent < 1 || mantissa < 0)
    return n.error("expected bits of an exponent, found " +
                   llvm::Twine(exponent) + " and a mantissa of " +
                   llvm::Twine(mantissa));
  const int64_t own_exponent = exponentOf(x.element()),
                own_mantissa = mantissaOf(x.element());
  // A format that holds all of x's numbers.
  if (exponent >= own_exponent && mantissa >= own_mantissa) return x;
  // Casts round as the bits do where the exponents are the same.
  const mlir::Type bf16 = n.e.builder().getBF16Type();
  if (x.element().isF32() && exponent == own_exponent &&
      mantissa == mantissaOf(bf16))
    return n.e.cast(n.e.cast(x, bf16), x.elementType());
  return roundBits(n.e, x, std::min(exponent, own_exponent),
                   std::min(mantissa, own_mantissa));
}

}  // namespace partita::stablehlo
