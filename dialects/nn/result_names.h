// Names of results of @main that have a meaning for training.
#ifndef PARTITA_DIALECTS_NN_RESULT_NAMES_H_
#define PARTITA_DIALECTS_NN_RESULT_NAMES_H_

namespace partita::nn {

// A scalar f32 that training adds to the loss, such as a loss that balances
// routers.
inline constexpr char kAuxiliaryLossResult[] = "auxiliary_loss";

}  // namespace partita::nn

#endif  // PARTITA_DIALECTS_NN_RESULT_NAMES_H_
