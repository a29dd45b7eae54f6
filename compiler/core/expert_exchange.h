// Decides how experts get their rows where one axis divides both.
#ifndef PARTITA_COMPILER_CORE_EXPERT_EXCHANGE_H_
#define PARTITA_COMPILER_CORE_EXPERT_EXCHANGE_H_

#include <optional>
#include <vector>

#include "compiler/core/propagate.h"

namespace partita::core {

struct ExpertChoice {
  std::optional<ExpertExchange> exchange;  // none: what moves fewer bytes
  double bound = 0;                        // RowExchange::bound
};

struct ExpertCounts {
  int shared = 0;    // operations whose experts and rows share an axis
  int by_rows = 0;   // of these, operations whose rows travel
  int as_asked = 0;  // of these, operations computed as the choice says
};
// Sets Op::rows of experts and of their gradients. Rows can travel if every
// axis of the experts also divides the rows. Without a choice they travel where
// fewer bytes move.
ExpertCounts ChooseExpertExchange(const std::vector<Sharding>& shardings,
                                  const ExpertChoice& choice, Graph& graph);

// Sets the bytes that each way moves (RowExchange), and returns true, if rows
// of this operation can travel. It must have experts.
bool CompareExpertExchange(Graph& graph, int op,
                           const std::vector<Sharding>& shardings);

// True if, in an operation whose rows travel, both factors may have one axis:
// one is the experts' and the other a factor of the rows.
bool ShareAxes(const Op& op, int factor, int other);

}  // namespace partita::core

#endif  // PARTITA_COMPILER_CORE_EXPERT_EXCHANGE_H_
