// Decides where partial sums are reduced.
#ifndef PARTITA_COMPILER_CORE_DELAY_REDUCTIONS_H_
#define PARTITA_COMPILER_CORE_DELAY_REDUCTIONS_H_

#include <vector>

#include "compiler/core/propagate.h"

namespace partita::core {

// Marks values unreduced, and no longer divided over those axes, if this
// reduces fewer bytes later. This requires linear users whose results are no
// larger. For example, the three partial gradients that sum to the gradient of
// a layer's input are reduced once, after the addition; the result of a
// function is reduced at its call. A value is marked only if every user passes
// partial sums on. Values with closed divided dimensions stay as they are.
//
// Call once, after the last round of propagation. A tie from a function's
// result to its caller (Op::is_tie) is linear.
void DelayReductions(const Graph& graph, std::vector<Sharding>& shardings);

}  // namespace partita::core

#endif  // PARTITA_COMPILER_CORE_DELAY_REDUCTIONS_H_
