// The masks of attention as a tensor, for code that has no other form of them.
#ifndef PARTITA_DIALECTS_NN_ATTENTION_MASK_H_
#define PARTITA_DIALECTS_NN_ATTENTION_MASK_H_

#include "dialects/nn/dialect.h"
#include "dialects/nn/math_builder.h"

namespace partita::nn {

// Builds an i1 tensor with the sizes of `scores`: true where a query sees a
// key. `scores` has the sizes [B, N, L, S]; N may be 1, and so may B without
// segments. Null if all queries see all keys.
mlir::Value buildVisibleKeys(MathBuilder& b, AttentionOp op,
                             mlir::RankedTensorType scores);
mlir::Value buildVisibleKeys(MathBuilder& b, AttentionGradOp op,
                             mlir::RankedTensorType scores);

}  // namespace partita::nn

#endif  // PARTITA_DIALECTS_NN_ATTENTION_MASK_H_
