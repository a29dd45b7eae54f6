// Names of results of @main that have a meaning for training.
#ifndef PARTITA_DIALECTS_NN_RESULT_NAMES_H_
#define PARTITA_DIALECTS_NN_RESULT_NAMES_H_

namespace partita::nn {

// A scalar f32 that training adds to the loss, such as a loss that balances
// routers.
inline constexpr char kAuxiliaryLossResult[] = "auxiliary_loss";

// A scalar f32 that training adds to the loss: the distance from a teacher. It
// is a sum over positions divided by a constant, so that the losses of
// microbatches add up.
inline constexpr char kDistillationLossResult[] = "distillation_loss";
// A scalar f32 constant by which training multiplies the loss of the targets.
// With 0 the step has no targets.
inline constexpr char kTargetLossWeightResult[] = "target_loss_weight";

}  // namespace partita::nn

#endif  // PARTITA_DIALECTS_NN_RESULT_NAMES_H_
