#include "frontends/builder/experts.h"

namespace partita::builder {

Val experts(Emitter& e, Val x, Val ids, Val weights, const ExpertWeights& w,
            nn::ExpertActivation activation) {
  if (x.rank() == 0 || w.down.rank() != 3) {
    e.error("expected rows and a matrix [out, in] per expert, found shapes " +
            toString(x.shape()) + " and " + toString(w.down.shape()));
    return e.splatLike(0, x);
  }
  weights = e.cast(weights, x.elementType());
  Shape shape(x.shape());
  shape.back() = w.down.dim(1);
  return {e.create<nn::ExpertsOp>(
      e.tensor(shape, x.element()), x.value, ids.value, weights.value,
      w.gate.value, w.up.value, w.down.value, w.gate_bias.value,
      w.up_bias.value, w.down_bias.value, activation)};
}

}  // namespace partita::builder
