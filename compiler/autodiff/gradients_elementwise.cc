// Gradients of arith and math operations, as formulas per operand. 16-bit
// floats are computed in f32 and rounded once. At ties and kinks, where no
// derivative exists, the choice is PyTorch's.
#include <cmath>
#include <optional>

#include "compiler/autodiff/gradient.h"
#include "compiler/autodiff/gradients.h"
#include "compiler/autodiff/term.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"

namespace partita::autodiff {
namespace {

using mlir::LogicalResult;
using mlir::Value;
namespace arith = mlir::arith;
namespace math = mlir::math;

constexpr double kPi = 3.141592653589793;
constexpr double kLn2 = 0.6931471805599453;
constexpr double kLn10 = 2.302585092994046;

//===----------------------------------------------------------------------===//
// The shape of a rule
//===----------------------------------------------------------------------===//

// Inputs of a rule: g(i), the gradients of results; x(i), the operands; y(i),
// the results. All are at least f32.
class Terms {
 public:
  explicit Terms(Gradient& gradient) : gradient_(gradient) {}

  Term g(unsigned i = 0) { return term(gradient_.ofResult(i)); }
  Term x(unsigned i = 0) { return term(gradient_.operand(i)); }
  Term y(unsigned i = 0) { return term(gradient_.result(i)); }
  // Returns the splat value of operand i if it is a constant splat.
  std::optional<double> splat(unsigned i) {
    mlir::DenseFPElementsAttr values;
    if (!mlir::matchPattern(gradient_.operand(i), mlir::m_Constant(&values)) ||
        !values.isSplat())
      return std::nullopt;
    llvm::APFloat value = values.getSplatValue<llvm::APFloat>();
    bool exact;
    value.convert(llvm::APFloat::IEEEdouble(),
                  llvm::APFloat::rmNearestTiesToEven, &exact);
    return value.convertToDouble();
  }
  // False if no gradient flows to result i. Always true of a single result.
  bool hasG(unsigned i) const { return gradient_.ofResult(i) != nullptr; }
  Gradient& gradient() { return gradient_; }

 private:
  Term term(Value value) {
    return Term(gradient_.builder(), gradient_.loc(),
                gradient_.math.widen(value));
  }

  Gradient& gradient_;
};

using Rule = Term (*)(Terms&);

// No gradient flows to this operand: it is an integer, or the result is
// piecewise constant.
constexpr Rule kNone = nullptr;

// Registers `rules` as gradients of `Op`, one per operand.
template <typename Op, Rule... rules>
struct Model : GradientOpInterface::ExternalModel<Model<Op, rules...>, Op> {
  LogicalResult buildGradient(mlir::Operation* op, Gradient& gradient) const {
    constexpr Rule all[] = {rules...};
    for (unsigned i = 0; i < op->getNumOperands(); ++i) {
      if (!gradient.wants(i) || !all[i]) continue;
      Terms terms(gradient);
      gradient.add(i, convert(gradient, all[i](terms).value(),
                              gradient.operand(i).getType()));
    }
    return mlir::success();
  }

 private:
  // Converts to a type of the same shape.
  static Value convert(Gradient& gradient, Value x, mlir::Type type) {
    if (x.getType() == type) return x;
    if (auto widened = x.getDefiningOp<arith::ExtFOp>();
        widened && widened.getIn().getType() == type)
      return widened.getIn();
    const unsigned from = nn::MathBuilder::typeOf(x).getElementTypeBitWidth(),
                   to =
                       mlir::getElementTypeOrSelf(type).getIntOrFloatBitWidth();
    if (from < to)
      return arith::ExtFOp::create(gradient.builder(), gradient.loc(), type, x);
    return arith::TruncFOp::create(gradient.builder(), gradient.loc(), type, x);
  }
};

//===----------------------------------------------------------------------===//
// arith
//===----------------------------------------------------------------------===//

Term same(Terms& t) { return t.g(); }
Term negated(Terms& t) { return -t.g(); }
Term timesLhs(Terms& t) { return t.g() * t.x(0); }
Term timesRhs(Terms& t) { return t.g() * t.x(1); }
Term dividend(Terms& t) { return t.g() / t.x(1); }
Term divisor(Terms& t) { return -(t.g() * t.y() / t.x(1)); }
Term modulus(Terms& t) {
  return -(t.g() * (t.x(0) / t.x(1)).apply<math::TruncOp>());
}

// Equal operands share the gradient; a NaN operand gets all of it, as it is the
// result. With a constant zero this is a rectifier, whose slope at zero is 0.
template <unsigned i>
Term greater(Terms& t) {
  if (t.splat(1 - i) == 0) return (t.x(i) <= 0.0).choose(0, t.g());
  const Term shared = (t.x(i) == t.x(1 - i)).choose(t.g() * 0.5, t.g());
  return (t.x(i) < t.x(1 - i)).choose(0, shared);
}
template <unsigned i>
Term less(Terms& t) {
  if (t.splat(1 - i) == 0) return (t.x(i) >= 0.0).choose(0, t.g());
  const Term shared = (t.x(i) == t.x(1 - i)).choose(t.g() * 0.5, t.g());
  return (t.x(i) > t.x(1 - i)).choose(0, shared);
}
// maxnumf and minnumf prefer a number over a NaN.
Condition isNumber(Term x) { return {arith::CmpFPredicate::ORD, x, x}; }
template <unsigned i, Term (*rule)(Terms&)>
Term unlessNan(Terms& t) {
  return isNumber(t.x(i)).choose(rule(t), 0);
}

Term chosen(Terms& t) {
  return Condition(t.gradient().operand(0)).choose(t.g(), 0);
}
Term notChosen(Terms& t) {
  return Condition(t.gradient().operand(0)).choose(0, t.g());
}

void attachToArith(mlir::MLIRContext& c) {
  arith::AddFOp::attachInterface<Model<arith::AddFOp, same, same>>(c);
  arith::SubFOp::attachInterface<Model<arith::SubFOp, same, negated>>(c);
  arith::MulFOp::attachInterface<Model<arith::MulFOp, timesRhs, timesLhs>>(c);
  arith::DivFOp::attachInterface<Model<arith::DivFOp, dividend, divisor>>(c);
  arith::RemFOp::attachInterface<Model<arith::RemFOp, same, modulus>>(c);
  arith::NegFOp::attachInterface<Model<arith::NegFOp, negated>>(c);
  arith::MaximumFOp::attachInterface<
      Model<arith::MaximumFOp, greater<0>, greater<1>>>(c);
  arith::MinimumFOp::attachInterface<
      Model<arith::MinimumFOp, less<0>, less<1>>>(c);
  arith::MaxNumFOp::attachInterface<Model<
      arith::MaxNumFOp, unlessNan<0, greater<0>>, unlessNan<1, greater<1>>>>(c);
  arith::MinNumFOp::attachInterface<
      Model<arith::MinNumFOp, unlessNan<0, less<0>>, unlessNan<1, less<1>>>>(c);
  arith::SelectOp::attachInterface<
      Model<arith::SelectOp, kNone, chosen, notChosen>>(c);
  arith::ExtFOp::attachInterface<Model<arith::ExtFOp, same>>(c);
  arith::TruncFOp::attachInterface<Model<arith::TruncFOp, same>>(c);
}

//===----------------------------------------------------------------------===//
// math, one operand
//===----------------------------------------------------------------------===//

Term sin(Term x) { return x.apply<math::SinOp>(); }
Term cos(Term x) { return x.apply<math::CosOp>(); }
Term log(Term x) { return x.apply<math::LogOp>(); }
Term pow(Term x, Term y) { return x.apply<math::PowFOp>(y); }

Term ofAbs(Terms& t) {
  return (t.x() > 0.0).choose(t.g(), (t.x() < 0.0).choose(-t.g(), 0));
}
Term ofAcos(Terms& t) { return -(t.g() * rsqrt(1 - t.x() * t.x())); }
Term ofAcosh(Terms& t) { return t.g() * rsqrt(t.x() * t.x() - 1); }
Term ofAsin(Terms& t) { return t.g() * rsqrt(1 - t.x() * t.x()); }
Term ofAsinh(Terms& t) { return t.g() * rsqrt(t.x() * t.x() + 1); }
Term ofAtan(Terms& t) { return t.g() / (t.x() * t.x() + 1); }
Term ofAtanh(Terms& t) { return t.g() / (1 - t.x() * t.x()); }
Term ofCbrt(Terms& t) { return t.g() / (3 * (t.y() * t.y())); }
Term ofCos(Terms& t) { return -(t.g() * sin(t.x())); }
Term ofCosh(Terms& t) { return t.g() * t.x().apply<math::SinhOp>(); }
Term ofErf(Terms& t) {
  return t.g() * (2 / std::sqrt(kPi) * exp(-(t.x() * t.x())));
}
Term ofErfc(Terms& t) { return -ofErf(t); }
Term ofExp(Terms& t) { return t.g() * t.y(); }
Term ofExp2(Terms& t) { return t.g() * (t.y() * kLn2); }
Term ofExpM1(Terms& t) { return t.g() * (t.y() + 1); }
Term ofLog(Terms& t) { return t.g() / t.x(); }
Term ofLog10(Terms& t) { return t.g() / (t.x() * kLn10); }
Term ofLog1p(Terms& t) { return t.g() / (t.x() + 1); }
Term ofLog2(Terms& t) { return t.g() / (t.x() * kLn2); }
Term ofRsqrt(Terms& t) { return t.g() * (-0.5 * (t.y() * t.y() * t.y())); }
Term ofSin(Terms& t) { return t.g() * cos(t.x()); }
Term ofSincos(Terms& t) {
  if (!t.hasG(0)) return -(t.g(1) * t.y(0));
  const Term of_sine = t.g(0) * t.y(1);
  return t.hasG(1) ? of_sine - t.g(1) * t.y(0) : of_sine;
}
Term ofSinh(Terms& t) { return t.g() * t.x().apply<math::CoshOp>(); }
Term ofSqrt(Terms& t) { return t.g() / (2 * t.y()); }
Term ofTan(Terms& t) { return t.g() * (t.y() * t.y() + 1); }
Term ofTanh(Terms& t) { return t.g() * (1 - t.y() * t.y()); }

template <typename Op, Rule rule>
void attachUnary(mlir::MLIRContext& context) {
  Op::template attachInterface<Model<Op, rule>>(context);
}

void attachUnaries(mlir::MLIRContext& c) {
  attachUnary<math::AbsFOp, ofAbs>(c);
  attachUnary<math::AcosOp, ofAcos>(c);
  attachUnary<math::AcoshOp, ofAcosh>(c);
  attachUnary<math::AsinOp, ofAsin>(c);
  attachUnary<math::AsinhOp, ofAsinh>(c);
  attachUnary<math::AtanOp, ofAtan>(c);
  attachUnary<math::AtanhOp, ofAtanh>(c);
  attachUnary<math::CbrtOp, ofCbrt>(c);
  attachUnary<math::CeilOp, kNone>(c);
  attachUnary<math::CosOp, ofCos>(c);
  attachUnary<math::CoshOp, ofCosh>(c);
  attachUnary<math::ErfOp, ofErf>(c);
  attachUnary<math::ErfcOp, ofErfc>(c);
  attachUnary<math::ExpOp, ofExp>(c);
  attachUnary<math::Exp2Op, ofExp2>(c);
  attachUnary<math::ExpM1Op, ofExpM1>(c);
  attachUnary<math::FloorOp, kNone>(c);
  attachUnary<math::LogOp, ofLog>(c);
  attachUnary<math::Log10Op, ofLog10>(c);
  attachUnary<math::Log1pOp, ofLog1p>(c);
  attachUnary<math::Log2Op, ofLog2>(c);
  attachUnary<math::RoundEvenOp, kNone>(c);
  attachUnary<math::RoundOp, kNone>(c);
  attachUnary<math::RsqrtOp, ofRsqrt>(c);
  attachUnary<math::SinOp, ofSin>(c);
  attachUnary<math::SincosOp, ofSincos>(c);
  attachUnary<math::SinhOp, ofSinh>(c);
  attachUnary<math::SqrtOp, ofSqrt>(c);
  attachUnary<math::TanOp, ofTan>(c);
  attachUnary<math::TanhOp, ofTanh>(c);
  attachUnary<math::TruncOp, kNone>(c);
}

//===----------------------------------------------------------------------===//
// math, several operands
//===----------------------------------------------------------------------===//

// The gradient at the origin is zero.
Term overSquares(Terms& t, Term numerator) {
  const Term squares = t.x(0) * t.x(0) + t.x(1) * t.x(1);
  return (squares == 0.0).choose(0, t.g() * numerator / squares);
}
Term atan2Lhs(Terms& t) { return overSquares(t, t.x(1)); }
Term atan2Rhs(Terms& t) { return overSquares(t, -t.x(0)); }

Term copySignLhs(Terms& t) {
  return (t.x(0) == 0.0).choose(0, t.g() * (t.y() / t.x(0)));
}

// n x^(n-1), and 0 if n is 0, for any x.
Term powBase(Terms& t) {
  if (const std::optional<double> n = t.splat(1)) {
    if (*n == 0) return t.g().constant(0);
    if (*n == 1) return t.g();
    if (*n == 2) return t.g() * (2 * t.x(0));
    if (*n == 3) return t.g() * (3 * (t.x(0) * t.x(0)));
    return t.g() * (*n * pow(t.x(0), t.x(1).constant(*n - 1)));
  }
  const Term slope = t.x(1) * pow(t.x(0), t.x(1) - 1);
  return (t.x(1) == 0.0).choose(0, t.g() * slope);
}
// y log x; 0 if x and y are 0, which is the limit.
Term powExponent(Terms& t) {
  const Term safe =
      (t.x(0) == 0.0).choose((t.x(1) >= 0.0).choose(1, t.x(0)), t.x(0));
  return t.g() * (t.y() * log(safe));
}

// The same for an integer exponent.
Term fpowiBase(Terms& t) {
  nn::MathBuilder& b = t.gradient().math;
  const Value n = t.gradient().operand(1);
  const Term x = t.x(0);
  const Term factor = x.with(b.toFloat(n, x.type().getElementType()));
  const Term power = x.with(math::FPowIOp::create(
      t.gradient().builder(), t.gradient().loc(), x.value(), b.addInt(n, -1)));
  return (factor == 0.0).choose(0, t.g() * (factor * power));
}

// Operands x, low, high. At a bound, x gets the gradient; beyond a bound, the
// bound does. If low > high, the result is high.
Term clampInput(Terms& t) {
  const Condition above = t.x(0) >= t.x(1), below = t.x(0) <= t.x(2);
  return above.choose(below.choose(t.g(), 0), 0);
}
Term clampLow(Terms& t) {
  const Condition uncrossed = t.x(1) <= t.x(2);
  return (t.x(0) < t.x(1)).choose(uncrossed.choose(t.g(), 0), 0);
}
Term clampHigh(Terms& t) {
  const Term outside = (t.x(0) > t.x(2)).choose(t.g(), 0);
  return (t.x(1) > t.x(2)).choose(t.g(), outside);
}

void attachOthers(mlir::MLIRContext& c) {
  math::Atan2Op::attachInterface<Model<math::Atan2Op, atan2Lhs, atan2Rhs>>(c);
  math::CopySignOp::attachInterface<
      Model<math::CopySignOp, copySignLhs, kNone>>(c);
  math::PowFOp::attachInterface<Model<math::PowFOp, powBase, powExponent>>(c);
  math::FPowIOp::attachInterface<Model<math::FPowIOp, fpowiBase, kNone>>(c);
  math::ClampFOp::attachInterface<
      Model<math::ClampFOp, clampInput, clampLow, clampHigh>>(c);
  math::FmaOp::attachInterface<Model<math::FmaOp, timesRhs, timesLhs, same>>(c);
}

}  // namespace

void registerElementwiseGradients(mlir::MLIRContext* context) {
  attachToArith(*context);
  attachUnaries(*context);
  attachOthers(*context);
}

}  // namespace partita::autodiff
