// Why an operation does not compute with what its tensors are annotated with.
#ifndef PARTITA_COMPILER_CORE_CONFLICT_H_
#define PARTITA_COMPILER_CORE_CONFLICT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/core/propagate.h"

namespace partita::core {

// Whether it is (also) for this conflict that the operation's tensor (operands
// first) is not computed with as `has` says: it has the axis that was lost, or
// it lacks the one that was kept.
bool Concerns(const Graph& graph, const Conflict& conflict, int tensor,
              const Sharding& has);

// In words: dimensions by their names where the graph has them, entries as they
// were written.
std::string Describe(const Graph& graph, const Conflict& conflict);

}  // namespace partita::core

#endif  // PARTITA_COMPILER_CORE_CONFLICT_H_
