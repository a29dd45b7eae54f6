// Where partial sums are added up.
#ifndef PARTITA_COMPILER_CORE_DELAY_REDUCTIONS_H_
#define PARTITA_COMPILER_CORE_DELAY_REDUCTIONS_H_

#include <vector>

#include "compiler/core/propagate.h"

namespace partita::core {

// Marks values unreduced, and no longer divided over those axes, where what is
// made of them is linear and no larger, so that fewer bytes are summed later:
// the three partial gradients that add up to that of a layer's input are
// reduced once, as one; what a function returns is reduced where it is called.
// A value is marked only if everything that reads it passes partial sums on.
// Values whose divided dimensions are closed stay.
//
// To be called once, after the last round of propagation: a tie of a function's
// result to its caller (Op::is_tie) is linear in it.
void DelayReductions(const Graph& graph, std::vector<Sharding>& shardings);

}  // namespace partita::core

#endif  // PARTITA_COMPILER_CORE_DELAY_REDUCTIONS_H_
