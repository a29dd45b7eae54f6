// Marks inputs of @main that are weights. A function of JAX takes its weights
// as arguments; they divide like parameters, and their first dimension is no
// batch.
#ifndef PARTITA_DIALECTS_NN_WEIGHT_MARK_H_
#define PARTITA_DIALECTS_NN_WEIGHT_MARK_H_

namespace partita::nn {

// A unit attribute of an argument.
inline constexpr char kWeightAttr[] = "nn.weight";

}  // namespace partita::nn

#endif  // PARTITA_DIALECTS_NN_WEIGHT_MARK_H_
