#include "frontends/builder/activation.h"

#include "mlir/Dialect/Math/IR/Math.h"

namespace partita::builder {

namespace math = mlir::math;

Val exp(Emitter& e, Val x) { return e.unary<math::ExpOp>(x); }

Val softplus(Emitter& e, Val x) {
  Val small = e.unary<math::Log1pOp>(exp(e, e.neg(e.abs(x))));
  return e.add(e.maximum(x, 0), small);
}

Val positiveOr(Emitter& e, Val x, Val other) {
  return e.select(e.compare(Compare::gt, x, 0.0), x, other);
}

Val negativeExpm1(Emitter& e, Val x) {
  return e.unary<math::ExpM1Op>(e.minimum(x, 0));
}

Val hardSigmoid(Emitter& e, Val x, double alpha, double beta) {
  return e.minimum(e.maximum(e.add(e.mul(x, alpha), beta), 0), 1);
}

Val gelu(Emitter& e, Val x, bool is_tanh) {
  Val inner;
  if (is_tanh) {
    Val cube = e.mul(e.mul(x, x), x);
    inner = e.unary<math::TanhOp>(
        e.mul(e.add(x, e.mul(cube, 0.044715)), 0.79788456080286535588));
  } else {
    inner = e.unary<math::ErfOp>(e.mul(x, 0.70710678118654752440));
  }
  return e.mul(e.mul(x, 0.5), e.add(inner, 1));
}

Val dropout(Emitter& e, Val x, double ratio, Val seed, Val* kept) {
  Val stays = e.compare(Compare::ge, e.uniform(seed, x.shape()), ratio);
  if (kept) *kept = stays;
  return e.select(stays, e.mul(x, 1 / (1 - ratio)), e.splatLike(0, x));
}

}  // namespace partita::builder
