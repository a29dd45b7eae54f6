// Operators on tensors: a Term is a float value with the operators of
// arithmetic.
//
// Operands have equal types; a double is a splat of the other operand's type.
// Terms compute in their value's element type: call `widen` first if it may be
// a 16-bit float.
#ifndef PARTITA_COMPILER_AUTODIFF_TERM_H_
#define PARTITA_COMPILER_AUTODIFF_TERM_H_

#include "dialects/nn/math_builder.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace partita::autodiff {

class Term {
 public:
  Term(mlir::OpBuilder& builder, mlir::Location loc, mlir::Value value)
      : builder_(&builder), loc_(loc), value_(value) {}

  mlir::Value value() const { return value_; }
  nn::MathBuilder math() const { return {*builder_, loc_}; }
  nn::MathBuilder::Type type() const { return nn::MathBuilder::typeOf(value_); }

  // Returns a Term of another value with the same builder.
  Term with(mlir::Value value) const { return {*builder_, loc_, value}; }
  Term constant(double value) const {
    return with(math().constant(type(), value));
  }
  // Applies `Op` to this Term and others.
  template <typename Op, typename... Terms>
  Term apply(Terms... others) const {
    return with(Op::create(*builder_, loc_, value_, others.value()...));
  }

 private:
  mlir::OpBuilder* builder_;
  mlir::Location loc_;
  mlir::Value value_;
};

inline Term operator+(Term x, Term y) {
  return x.apply<mlir::arith::AddFOp>(y);
}
inline Term operator-(Term x, Term y) {
  return x.apply<mlir::arith::SubFOp>(y);
}
inline Term operator*(Term x, Term y) {
  return x.apply<mlir::arith::MulFOp>(y);
}
inline Term operator/(Term x, Term y) {
  return x.apply<mlir::arith::DivFOp>(y);
}
inline Term operator-(Term x) { return x.apply<mlir::arith::NegFOp>(); }

inline Term operator+(Term x, double y) { return x + x.constant(y); }
inline Term operator-(Term x, double y) { return x - x.constant(y); }
inline Term operator*(Term x, double y) { return x * x.constant(y); }
inline Term operator/(Term x, double y) { return x / x.constant(y); }
inline Term operator+(double x, Term y) { return y.constant(x) + y; }
inline Term operator-(double x, Term y) { return y.constant(x) - y; }
inline Term operator*(double x, Term y) { return y.constant(x) * y; }
inline Term operator/(double x, Term y) { return y.constant(x) / y; }

inline Term exp(Term x) { return x.apply<mlir::math::ExpOp>(); }
inline Term rsqrt(Term x) { return x.apply<mlir::math::RsqrtOp>(); }

// A condition per element. Comparisons are ordered: NaN gives false.
class Condition {
 public:
  Condition(mlir::arith::CmpFPredicate predicate, Term x, Term y)
      : value_(x.math().compare(predicate, x.value(), y.value())) {}
  explicit Condition(mlir::Value value) : value_(value) {}

  mlir::Value value() const { return value_; }
  Term choose(Term yes, Term no) const {
    return yes.with(yes.math().select(value_, yes.value(), no.value()));
  }
  Term choose(Term yes, double no) const {
    return choose(yes, yes.constant(no));
  }
  Term choose(double yes, Term no) const {
    return choose(no.constant(yes), no);
  }

 private:
  mlir::Value value_;
};

inline Condition operator<(Term x, Term y) {
  return {mlir::arith::CmpFPredicate::OLT, x, y};
}
inline Condition operator>(Term x, Term y) {
  return {mlir::arith::CmpFPredicate::OGT, x, y};
}
inline Condition operator<=(Term x, Term y) {
  return {mlir::arith::CmpFPredicate::OLE, x, y};
}
inline Condition operator>=(Term x, Term y) {
  return {mlir::arith::CmpFPredicate::OGE, x, y};
}
inline Condition operator==(Term x, Term y) {
  return {mlir::arith::CmpFPredicate::OEQ, x, y};
}
inline Condition operator<(Term x, double y) { return x < x.constant(y); }
inline Condition operator>(Term x, double y) { return x > x.constant(y); }
inline Condition operator<=(Term x, double y) { return x <= x.constant(y); }
inline Condition operator>=(Term x, double y) { return x >= x.constant(y); }
inline Condition operator==(Term x, double y) { return x == x.constant(y); }

}  // namespace partita::autodiff

#endif  // PARTITA_COMPILER_AUTODIFF_TERM_H_
