// Arithmetic, comparison, logic and mathematical functions, element by element.
// Shapes are equal, except that conditions and bounds may be scalars.
#include "frontends/stablehlo/ops/ops.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace partita::stablehlo {

namespace arith = mlir::arith;
namespace math = mlir::math;

namespace {

using Unary = Val (Emitter::*)(Val);
using Binary = Val (Emitter::*)(Val, Val);

// 0 and NaN stay unchanged.
Val sign(Emitter& e, Val x) {
  Val upper = e.select(e.compare(Compare::gt, x, 0.0), e.splatLike(1, x), x);
  if (x.is_unsigned) return upper;
  return e.select(e.compare(Compare::lt, x, 0.0), e.splatLike(-1, x), upper);
}

// Two operands of one type and shape.
bool takePair(OpContext& n, Val& a, Val& b) {
  a = n.in(0);
  b = n.in(1);
  if (n.failed()) return false;
  if (a.shape() == b.shape() && a.elementType() == b.elementType()) return true;
  n.error("expected operands of one type, found " + toString(a.elementType()) +
          " " + toString(a.shape()) + " and " + toString(b.elementType()) +
          " " + toString(b.shape()));
  return false;
}

// XLA's results where integer division has none: x / 0 is -1 and x % 0 is x;
// the lowest number divided by -1 is itself, with remainder 0.
Val divideIntegers(Emitter& e, Val a, Val b, bool is_remainder) {
  const auto divide = [&](Val x, Val y) {
    return is_remainder ? e.remainder(x, y) : e.div(x, y);
  };
  // A divisor that is known needs no check.
  const auto constant = b.constant();
  const auto isSafe = [&](const llvm::APInt& value) {
    return !value.isZero() && (a.is_unsigned || !value.isAllOnes());
  };
  if (constant && llvm::all_of(constant.getValues<llvm::APInt>(), isSafe))
    return divide(a, b);
  const Val is_zero = e.compare(Compare::eq, b, 0.0);
  const Val by_zero = is_remainder ? a : e.splatLike(-1, a);
  Val unsafe = is_zero;
  Val overflowed;
  if (!a.is_unsigned) {
    // Wraps around: -lowest is the lowest.
    overflowed = is_remainder ? e.splatLike(0, a) : e.neg(a);
    unsafe = e.bitOr(is_zero, e.compare(Compare::eq, b, -1.0));
  }
  Val result = divide(a, e.select(unsafe, e.splatLike(1, b), b));
  if (overflowed) result = e.select(unsafe, overflowed, result);
  return e.select(is_zero, by_zero, result);
}

// Integers to the power of unsigned ones.
Val unsignedPower(Emitter& e, Val a, Val b) {
  const auto power = [&](Val x, Val y) {
    return Val{e.create<math::IPowIOp>(x.value, y.value), true};
  };
  const ElementType type = a.elementType();
  // Products wrap around, so wider ones have the same lower bits.
  if (type.type.getIntOrFloatBitWidth() < 64) {
    const ElementType wide = {e.i64(), true};
    return e.cast(power(e.cast(a, wide), e.cast(b, wide)), type);
  }
  // a^b is a^(2^63) * a^(b - 2^63) where the top bit of b is set.
  const Val top =
      e.constant(mlir::DenseElementsAttr::get(e.tensor({}, e.i64()),
                                              llvm::APInt::getSignMask(64)),
                 true);
  const Val is_large = e.compare(Compare::ge, b, top);
  const Val half = power(a, e.splatLike(std::ldexp(1.0, 62), a));
  const Val rest = power(a, e.select(is_large, e.bitXor(b, top), b));
  return e.select(is_large, e.mul(e.mul(half, half), rest), rest);
}

}  // namespace

Val importUnary(OpContext& n) {
  Val x = n.in(0);
  if (n.failed()) return {};
  if (n.name == "negate") return n.e.neg(x);
  if (n.name == "abs") return n.e.abs(x);
  if (n.name == "sign") return sign(n.e, x);
  if (n.name == "popcnt") return n.e.unary<math::CtPopOp>(x);
  if (n.name == "count_leading_zeros")
    return n.e.unary<math::CountLeadingZerosOp>(x);
  if (!x.isFloat()) return n.unsupported(toString(x.elementType()));
  if (n.name == "logistic") return n.e.sigmoid(x);
  const auto method =
      llvm::StringSwitch<Unary>(n.name)
          .Case("cbrt", &Emitter::unary<math::CbrtOp>)
          .Case("cosine", &Emitter::unary<math::CosOp>)
          .Case("exponential", &Emitter::unary<math::ExpOp>)
          .Case("exponential_minus_one", &Emitter::unary<math::ExpM1Op>)
          .Case("log", &Emitter::unary<math::LogOp>)
          .Case("log_plus_one", &Emitter::unary<math::Log1pOp>)
          .Case("rsqrt", &Emitter::unary<math::RsqrtOp>)
          .Case("sine", &Emitter::unary<math::SinOp>)
          .Case("sqrt", &Emitter::unary<math::SqrtOp>)
          .Case("tan", &Emitter::unary<math::TanOp>)
          .Case("tanh", &Emitter::unary<math::TanhOp>)
          .Default(nullptr);
  return method ? (n.e.*method)(x) : n.unsupported("this function");
}

Val importRounding(OpContext& n) {
  Val x = n.in(0);
  if (n.failed()) return {};
  if (!x.isFloat()) return n.unsupported(toString(x.elementType()));
  if (n.name == "ceil") return n.e.unary<math::CeilOp>(x);
  if (n.name == "floor") return n.e.unary<math::FloorOp>(x);
  if (n.name == "round_nearest_even") return n.e.unary<math::RoundEvenOp>(x);
  return n.e.unary<math::RoundOp>(x);
}

Val importNot(OpContext& n) {
  Val x = n.in(0);
  if (n.failed()) return {};
  if (x.isFloat()) return n.unsupported(toString(x.elementType()));
  return n.e.bitXor(x, n.e.splatLike(x.isBool() ? 1 : -1, x));
}

Val importIsFinite(OpContext& n) {
  Val x = n.in(0);
  if (n.failed()) return {};
  if (!x.isFloat()) return n.unsupported(toString(x.elementType()));
  // |x| < infinity is false for NaN, too.
  return n.e.compare(Compare::lt, n.e.abs(x), INFINITY);
}

Val importBinary(OpContext& n) {
  Val a, b;
  if (!takePair(n, a, b)) return {};
  const bool is_logic = n.name == "and" || n.name == "or" || n.name == "xor";
  if (is_logic && a.isFloat()) return n.unsupported(toString(a.elementType()));
  if (a.isBool()) {
    // Booleans add as "or" and multiply as "and".
    if (n.name == "add") return n.e.bitOr(a, b);
    if (n.name == "multiply") return n.e.bitAnd(a, b);
  }
  if ((n.name == "divide" || n.name == "remainder") && !a.isFloat()) {
    if (a.isBool()) return n.unsupported(toString(a.elementType()));
    return divideIntegers(n.e, a, b, n.name == "remainder");
  }
  if (n.name == "atan2")
    return a.isFloat() ? n.e.binary<math::Atan2Op>(a, b)
                       : n.unsupported(toString(a.elementType()));
  const auto method = llvm::StringSwitch<Binary>(n.name)
                          .Case("add", &Emitter::add)
                          .Case("and", &Emitter::bitAnd)
                          .Case("divide", &Emitter::div)
                          .Case("maximum", &Emitter::maximum)
                          .Case("minimum", &Emitter::minimum)
                          .Case("multiply", &Emitter::mul)
                          .Case("or", &Emitter::bitOr)
                          .Case("remainder", &Emitter::remainder)
                          .Case("subtract", &Emitter::sub)
                          .Case("xor", &Emitter::bitXor)
                          .Default(nullptr);
  return method ? (n.e.*method)(a, b) : n.unsupported("this operation");
}

Val importPower(OpContext& n) {
  Val a, b;
  if (!takePair(n, a, b)) return {};
  if (a.isFloat()) return n.e.binary<math::PowFOp>(a, b);
  if (a.isBool()) return n.unsupported(toString(a.elementType()));
  if (a.is_unsigned) return unsignedPower(n.e, a, b);
  return n.e.binary<math::IPowIOp>(a, b);
}

// A shift by the width or more gives 0, or the sign.
Val importShift(OpContext& n) {
  Val a, b;
  if (!takePair(n, a, b)) return {};
  if (a.isFloat() || a.isBool())
    return n.unsupported(toString(a.elementType()));
  const unsigned width = a.element().getIntOrFloatBitWidth();
  const bool is_arithmetic = n.name == "shift_right_arithmetic";
  const auto last = n.e.splatLike(width - 1, b);
  const Val amount = {b.value, /*is_unsigned=*/true};
  const auto shift = [&](Val by) -> Val {
    if (is_arithmetic)
      return {n.e.create<arith::ShRSIOp>(a.value, by.value), a.is_unsigned};
    if (n.name == "shift_left")
      return {n.e.create<arith::ShLIOp>(a.value, by.value), a.is_unsigned};
    return {n.e.create<arith::ShRUIOp>(a.value, by.value), a.is_unsigned};
  };
  if (auto constant = b.constant();
      constant && constant.isSplat() &&
      constant.getSplatValue<llvm::APInt>().ult(width))
    return shift(b);
  const Val limit = {last.value, /*is_unsigned=*/true};
  const Val within = n.e.minimum(amount, limit);
  if (is_arithmetic) return shift(within);
  return n.e.select(n.e.compare(Compare::le, amount, limit), shift(within),
                    n.e.splatLike(0, a));
}

Val importCompare(OpContext& n) {
  Val a, b;
  const int64_t direction = n.integer("comparison_direction");
  // Files from before 2022 lack the type of the comparison.
  const int64_t type = n.has("compare_type") ? n.integer("compare_type") : 0;
  if (!takePair(n, a, b)) return {};
  static constexpr Compare kDirections[] = {Compare::eq, Compare::ne,
                                            Compare::ge, Compare::gt,
                                            Compare::le, Compare::lt};
  if (direction < 0 || direction > 5)
    return n.error("unknown direction " + llvm::Twine(direction));
  constexpr int64_t kTotalOrder = 2;
  if (type == kTotalOrder && a.isFloat()) {
    // Compare the bits as signed integers; those of negative numbers are
    // flipped.
    const unsigned width = a.element().getIntOrFloatBitWidth();
    const mlir::Type integer = n.e.builder().getIntegerType(width);
    const auto key = [&](Val x) {
      Val bits = {n.e.create<arith::BitcastOp>(n.e.tensor(x.shape(), integer),
                                               x.value)};
      const auto mask =
          mlir::DenseElementsAttr::get(n.e.tensor(x.shape(), integer),
                                       llvm::APInt::getSignedMaxValue(width));
      return n.e.select(n.e.compare(Compare::lt, bits, 0.0),
                        n.e.bitXor(bits, n.e.constant(mask)), bits);
    };
    a = key(a);
    b = key(b);
  }
  return n.e.compare(kDirections[direction], a, b);
}

Val importSelect(OpContext& n) {
  const Val condition = n.in(0), a = n.in(1), b = n.in(2);
  if (n.failed()) return {};
  return n.e.select(condition, a, b);
}

Val importClamp(OpContext& n) {
  const Val low = n.in(0), x = n.in(1), high = n.in(2);
  if (n.failed()) return {};
  return n.e.minimum(n.e.maximum(x, low), high);
}

}  // namespace partita::stablehlo
