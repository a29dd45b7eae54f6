// Attention, whole and in parts.
#ifndef PARTITA_FRONTENDS_BUILDER_ATTENTION_H_
#define PARTITA_FRONTENDS_BUILDER_ATTENTION_H_

#include <optional>

#include "frontends/builder/emitter.h"

namespace partita::builder {

// Queries, keys and values as [batch, heads, length, size], and the bias for
// the scores, or a null bias. The number of key-value heads divides the number
// of query heads.
struct AttentionInputs {
  Val q, k, v, bias;
  double scale = 1, softcap = 0;
  std::optional<int64_t> causal_offset;
};

// 0 for a visible key, -inf for a hidden one.
Val biasOf(Emitter& e, Val visible, mlir::Type element);

// nn.attention.
Val attend(Emitter& e, const AttentionInputs& inputs);

// The scores at one of four points: 0 raw, 1 capped, 2 biased, 3 after softmax.
Val attentionScores(Emitter& e, const AttentionInputs& inputs, int64_t mode);

// Repeats each key-value head, so that there is one per query head.
Val repeatHeads(Emitter& e, Val x, int64_t heads);

}  // namespace partita::builder

#endif  // PARTITA_FRONTENDS_BUILDER_ATTENTION_H_
