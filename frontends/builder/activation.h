// Activation functions, built from arithmetic.
#ifndef PARTITA_FRONTENDS_BUILDER_ACTIVATION_H_
#define PARTITA_FRONTENDS_BUILDER_ACTIVATION_H_

#include "frontends/builder/emitter.h"

namespace partita::builder {

Val exp(Emitter& e, Val x);
// The exact function, or its approximation with tanh.
Val gelu(Emitter& e, Val x, bool is_tanh);
// log(1 + exp(x)) without overflow.
Val softplus(Emitter& e, Val x);
// x where it is positive, `other` elsewhere.
Val positiveOr(Emitter& e, Val x, Val other);
// exp(x) - 1 for negative x, 0 elsewhere, so that the unselected side of a
// select cannot overflow.
Val negativeExpm1(Emitter& e, Val x);
// min(max(alpha * x + beta, 0), 1).
Val hardSigmoid(Emitter& e, Val x, double alpha, double beta);
// Sets elements to 0 with probability `ratio` and scales the others; `seed` is
// a scalar i64. Sets `kept`, if given, to the elements that stay.
Val dropout(Emitter& e, Val x, double ratio, Val seed, Val* kept = nullptr);

}  // namespace partita::builder

#endif  // PARTITA_FRONTENDS_BUILDER_ACTIVATION_H_
