// The share of rows that a device multiplies where experts are divided.
#ifndef PARTITA_DIALECTS_NN_ROW_SHARE_H_
#define PARTITA_DIALECTS_NN_ROW_SHARE_H_

namespace partita::nn {

// A discardable f64 on mixtures of experts, grouped products and their
// gradients: the mean share of rows that choose one of the operation's
// matrices, if all matrices of the model have equally many rows. Absent: 1.
// Only prices depend on it.
inline constexpr char kRowShareAttr[] = "nn.row_share";

}  // namespace partita::nn

#endif  // PARTITA_DIALECTS_NN_ROW_SHARE_H_
