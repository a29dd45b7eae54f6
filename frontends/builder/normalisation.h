// Normalisations. Scales and biases may be null.
#ifndef PARTITA_FRONTENDS_BUILDER_NORMALISATION_H_
#define PARTITA_FRONTENDS_BUILDER_NORMALISATION_H_

#include "frontends/builder/emitter.h"

namespace partita::builder {

// Over the dimensions from `axis` on, whose shape scale and bias have.
Val layerNorm(Emitter& e, Val x, Val scale, Val bias, int64_t axis,
              double epsilon);
Val rmsNorm(Emitter& e, Val x, Val scale, int64_t axis, double epsilon);

// Normalises [N, C, spatial...] over groups of channels, without scale or bias.
// `groups` divides C.
Val normaliseGroups(Emitter& e, Val x, int64_t groups, double epsilon);

// Operands are vectors with one entry per channel, in x's type.
struct BatchNorm {
  Val scale, bias, mean, variance;
  double epsilon = 1e-5, momentum = 0.1;  // momentum: weight of the batch
  bool training = false, unbiased = false;
};
// The result and, in training, the new mean and variance.
llvm::SmallVector<Val> batchNorm(Emitter& e, Val x, const BatchNorm& norm);

// Reshapes a vector with one entry per channel so that it broadcasts against
// [N, C, spatial...] of this rank.
Val perChannel(Emitter& e, Val vector, int64_t rank);

}  // namespace partita::builder

#endif  // PARTITA_FRONTENDS_BUILDER_NORMALISATION_H_
