// Decides how attention over a divided sequence is computed.
#ifndef PARTITA_COMPILER_CORE_LONG_ATTENTION_H_
#define PARTITA_COMPILER_CORE_LONG_ATTENTION_H_

#include <optional>
#include <vector>

#include "compiler/core/propagate.h"

namespace partita::core {

// The rule of attention in a ring: keys are divided as queries are.
ShardingRule AsRing(const ShardingRule& rule);
// True if keys can travel: as many keys as queries, no other operand or result
// has the keys' factor beside the queries' (a bias of pairs), and masks depend
// on distances alone (no sinks and blocks).
bool CanRing(const ShardingRule& rule);

struct LongAttentionCounts {
  int divided = 0;   // operations whose queries are divided
  int as_asked = 0;  // of these, computed as `choice` says
};
// Sets Op::attention, and the rules of rings, where an operand divides the
// queries of attention. Without a choice, rows are exchanged for heads where
// fewer bytes move and the heads divide evenly; otherwise keys are gathered.
// A ring needs CanRing, else keys are gathered.
LongAttentionCounts ChooseLongAttention(const std::vector<Sharding>& shardings,
                                        std::optional<LongAttention> choice,
                                        Graph& graph);

}  // namespace partita::core

#endif  // PARTITA_COMPILER_CORE_LONG_ATTENTION_H_
