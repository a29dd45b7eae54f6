// Explains why an operation does not compute with the shardings of its tensors.
#ifndef PARTITA_COMPILER_CORE_CONFLICT_H_
#define PARTITA_COMPILER_CORE_CONFLICT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/core/propagate.h"

namespace partita::core {

// True if the conflict is a reason why the operation does not use sharding
// `has` for its tensor `tensor` (operands first). `has` then contains the axis
// that was lost, or lacks the axis that was kept.
bool Concerns(const Graph& graph, const Conflict& conflict, int tensor,
              const Sharding& has);

// Returns a description. Dimensions are named if the graph has names; plan
// entries appear as the user wrote them.
std::string Describe(const Graph& graph, const Conflict& conflict);

}  // namespace partita::core

#endif  // PARTITA_COMPILER_CORE_CONFLICT_H_
