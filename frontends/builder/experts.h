// Mixtures of experts.
#ifndef PARTITA_FRONTENDS_BUILDER_EXPERTS_H_
#define PARTITA_FRONTENDS_BUILDER_EXPERTS_H_

#include "frontends/builder/emitter.h"

namespace partita::builder {

// Matrices of all experts, [out, in] each: `gate` and `up` [X, M, E], `down`
// [X, E', M]; biases [X, M], [X, M] and [X, E']. The gate and the biases may be
// empty.
struct ExpertWeights {
  Val gate, up, down, gate_bias, up_bias, down_bias;
};

// The sum over j of weights[..., j] times what expert ids[..., j] computes of
// x[..., E], as in nn.experts. Weights are cast to the type of x. An index that
// is not an expert's contributes 0.
Val experts(Emitter& e, Val x, Val ids, Val weights, const ExpertWeights& w,
            nn::ExpertActivation activation);

}  // namespace partita::builder

#endif  // PARTITA_FRONTENDS_BUILDER_EXPERTS_H_
