// Rounds the factors of marked products to 8 bits; see passes.td for the
// formula. The scale of a factor is a power of two, so that multiplying by it
// is exact, and bf16 holds all scaled numbers of 8 bits.
#include "compiler/autodiff/float8_marks.h"
#include "compiler/autodiff/passes.h"
#include "dialects/nn/math_builder.h"

namespace partita::autodiff {

#define GEN_PASS_DEF_ROUNDFLOAT8FACTORSPASS
#include "compiler/autodiff/passes.h.inc"

namespace {

using mlir::FloatType;
using mlir::RankedTensorType;
using mlir::Value;

// The largest number of either format is 1.75 times a power of two: 2^8 for
// e4m3, 2^15 for e5m2.
constexpr double kTopE4M3 = 256, kTopE5M2 = 32768;
// Bits of an f32: its exponent, what carries into the exponent from fractions
// above 0.75, and a factor of two.
constexpr int64_t kExponentBits = 0x7f800000, kAboveThreeQuarters = 0x1fffff,
                  kTwo = 0x800000;
// Lower bound of p / 2, for factors of zeros.
constexpr double kLeastHalf = 0x1p-101;

// Half of the least power of two p such that |x| <= 1.75 p for all elements:
// f32[]. p itself may be 2^128, which is no f32. NaN if an element is infinite
// or NaN.
Value halfPowerOf(nn::MathBuilder& math, mlir::OpBuilder& builder, Value wide) {
  auto type = nn::MathBuilder::typeOf(wide);
  const Value size = mlir::math::AbsFOp::create(builder, wide.getLoc(), wide);
  const Value largest =
      math.reduce(nn::ReduceKind::max, size,
                  llvm::to_vector(llvm::seq<int64_t>(0, type.getRank())));
  auto number = nn::MathBuilder::typeOf(largest);
  const Value bits = mlir::arith::BitcastOp::create(
      builder, wide.getLoc(), number.clone(builder.getI32Type()), largest);
  const Value exponent = math.addInt(
      math.andInt(math.addInt(bits, kAboveThreeQuarters), kExponentBits),
      -kTwo);
  const Value power =
      mlir::arith::BitcastOp::create(builder, wide.getLoc(), number, exponent);
  const Value half = mlir::arith::MaximumFOp::create(
      builder, wide.getLoc(), power, math.constant(number, kLeastHalf));
  return math.multiply(half, math.add(math.multiply(largest, 0.0), 1.0));
}

// The factor with each number rounded to `narrow` times a power of two.
Value rounded(mlir::OpBuilder& builder, Value factor, FloatType narrow) {
  nn::MathBuilder math(builder, factor.getLoc());
  const double top =
      mlir::isa<mlir::Float8E5M2Type>(narrow) ? kTopE5M2 : kTopE4M3;
  const Value wide = math.widen(factor);
  auto type = nn::MathBuilder::typeOf(wide);
  const Value half = halfPowerOf(math, builder, wide);
  auto number = nn::MathBuilder::typeOf(half);
  const Value up = math.broadcast(
      math.divide(math.constant(number, top / 2), half), type, {});
  const Value down = math.broadcast(math.divide(half, top / 2), type, {});
  const Value bytes = math.narrow(math.multiply(wide, up), type.clone(narrow));
  return math.narrow(math.multiply(math.widen(bytes), down),
                     nn::MathBuilder::typeOf(factor));
}

class RoundFloat8Factors
    : public impl::RoundFloat8FactorsPassBase<RoundFloat8Factors> {
 public:
  using RoundFloat8FactorsPassBase::RoundFloat8FactorsPassBase;

  void runOnOperation() override {
    const FloatType e4m3 = mlir::Float8E4M3FNType::get(&getContext());
    const FloatType e5m2 = mlir::Float8E5M2Type::get(&getContext());
    getOperation().walk([&](nn::DotGeneralOp dot) {
      auto mark = dot->getAttrOfType<mlir::StringAttr>(kFloat8Attr);
      if (!mark) return;
      dot->removeAttr(kFloat8Attr);
      mlir::OpBuilder builder(dot);
      const auto round = [&](mlir::OpOperand& factor, const char* gradient) {
        factor.set(rounded(builder, factor.get(),
                           mark.getValue() == gradient ? e5m2 : e4m3));
      };
      round(dot.getLhsMutable(), kFloat8GradientLhs);
      round(dot.getRhsMutable(), kFloat8GradientRhs);
    });
  }
};

}  // namespace
}  // namespace partita::autodiff
