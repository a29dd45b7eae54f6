// Conversions of 8-bit floats by integer operations. With M bits of fraction
// and the exponent bias B, a code c >= 2^M is the f32 whose bits are
// c << (23 - M), with 127 - B added to its exponent. Smaller codes are
// multiples of the least number, 2^(1 - B - M). runtime/base/dtype.cc does the
// same.
#include "compiler/kernels/emit_float8.h"

#include <cmath>

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/TypeUtilities.h"

namespace partita::kernels {
namespace {

using namespace mlir;

struct Format {
  explicit Format(Type element)
      : fraction_bits(isa<Float8E5M2Type>(element) ? 2 : 3),
        bias(isa<Float8E5M2Type>(element) ? 15 : 7),
        overflow(isa<Float8E5M2Type>(element) ? 0x7c : 0x7f) {}

  int shift() const { return 23 - fraction_bits; }
  // The difference of the exponents' biases, as bits of an f32.
  int64_t rebias() const { return int64_t{127 - bias} << 23; }

  int fraction_bits, bias;
  int64_t overflow;  // the code of numbers that are too large
};

// Integer and float operations on scalars or vectors of one shape.
class Bits {
 public:
  Bits(ImplicitLocOpBuilder& builder, Type like)
      : builder_(builder),
        integer_(of(like, builder.getI32Type())),
        real_(of(like, builder.getF32Type())) {}

  static Type of(Type like, Type element) {
    if (auto vector = dyn_cast<VectorType>(like)) return vector.clone(element);
    return element;
  }
  Value integer(int64_t number) {
    return constant(integer_,
                    builder_.getI32IntegerAttr(static_cast<int32_t>(number)));
  }
  Value real(double number) {
    return constant(real_,
                    builder_.getF32FloatAttr(static_cast<float>(number)));
  }
  template <typename Op>
  Value make(Value a, Value b) {
    return Op::create(builder_, a, b);
  }
  Value add(Value a, int64_t b) { return make<arith::AddIOp>(a, integer(b)); }
  Value mask(Value a, int64_t b) { return make<arith::AndIOp>(a, integer(b)); }
  Value left(Value a, int64_t b) { return make<arith::ShLIOp>(a, integer(b)); }
  Value right(Value a, int64_t b) {
    return make<arith::ShRUIOp>(a, integer(b));
  }
  Value less(Value a, int64_t b) {
    return arith::CmpIOp::create(builder_, arith::CmpIPredicate::ult, a,
                                 integer(b));
  }
  Value choose(Value condition, Value yes, Value no) {
    return arith::SelectOp::create(builder_, condition, yes, no);
  }
  Value asReal(Value bits) {
    return arith::BitcastOp::create(builder_, real_, bits);
  }
  Value asBits(Value number) {
    return arith::BitcastOp::create(builder_, integer_, number);
  }
  Type integerType() const { return integer_; }
  Type realType() const { return real_; }

 private:
  Value constant(Type type, TypedAttr number) {
    if (auto vector = dyn_cast<VectorType>(type))
      number = DenseElementsAttr::get(vector, Attribute(number));
    return arith::ConstantOp::create(builder_, number);
  }

  ImplicitLocOpBuilder& builder_;
  const Type integer_, real_;
};

}  // namespace

bool isFloat8(Type element) {
  return isa<Float8E4M3FNType, Float8E5M2Type>(element);
}

Type storedType(Type element) {
  if (element.isInteger(1) || isFloat8(element))
    return IntegerType::get(element.getContext(), 8);
  return element;
}

Value encodeFloat8(ImplicitLocOpBuilder& builder, Value value, Type element) {
  const Format format(element);
  Bits b(builder, value.getType());
  const Value bits = b.asBits(value);
  const Value sign = b.mask(b.right(bits, 24), 0x80);
  const Value magnitude = b.mask(bits, 0x7fffffff);
  // Rounds to nearest even; a carry moves on to the exponent.
  const Value odd = b.mask(b.right(magnitude, format.shift()), 1);
  const Value half =
      b.add(b.make<arith::AddIOp>(magnitude, odd),
            (int64_t{1} << (format.shift() - 1)) - 1 - format.rebias());
  const Value normal = b.right(half, format.shift());
  // The unit in the last place of this sum is the least number of the format.
  const Value aligned =
      b.real(std::ldexp(1.0, 24 - format.bias - format.fraction_bits));
  const Value sum = b.make<arith::AddFOp>(b.asReal(magnitude), aligned);
  const Value subnormal =
      b.make<arith::SubIOp>(b.asBits(sum), b.asBits(aligned));
  Value code = b.choose(b.less(magnitude, format.rebias() + (1 << 23)),
                        subnormal, normal);
  code = b.make<arith::MinUIOp>(code, b.integer(format.overflow));
  code = b.choose(b.less(magnitude, 0x7f800001), code, b.integer(0x7f));
  code = b.make<arith::OrIOp>(code, sign);
  return arith::TruncIOp::create(
      builder, Bits::of(value.getType(), builder.getI8Type()), code);
}

Value decodeFloat8(ImplicitLocOpBuilder& builder, Value bytes, Type element) {
  const Format format(element);
  Bits b(builder, bytes.getType());
  const Value bits = arith::ExtUIOp::create(builder, b.integerType(), bytes);
  const Value code = b.mask(bits, 0x7f);
  const Value shifted = b.left(code, format.shift());
  const Value normal = b.add(shifted, format.rebias());
  const Value subnormal = b.asBits(b.make<arith::MulFOp>(
      arith::SIToFPOp::create(builder, b.realType(), code),
      b.real(std::ldexp(1.0, 1 - format.bias - format.fraction_bits))));
  // Infinities and NaN: all bits of the exponent, and the fraction.
  const Value special = b.make<arith::OrIOp>(shifted, b.integer(0x7f800000));
  Value result =
      b.choose(b.less(code, 1 << format.fraction_bits), subnormal, normal);
  result = b.choose(b.less(code, format.overflow), result, special);
  const Value sign = b.left(b.mask(bits, 0x80), 24);
  return b.asReal(b.make<arith::OrIOp>(result, sign));
}

}  // namespace partita::kernels
