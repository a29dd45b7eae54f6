// ZeRO as shardings.
#ifndef PARTITA_COMPILER_SHARDING_DIVIDE_STATES_H_
#define PARTITA_COMPILER_SHARDING_DIVIDE_STATES_H_

#include <set>
#include <vector>

#include "compiler/plan/plan.h"
#include "compiler/sharding/problem.h"

namespace partita::sharding {

// The axes that the plan's entries give B.
std::vector<core::AxisRef> axesOfBatch(const plan::Plan& plan);
// Those that divide it in these stages of a pipeline; none given: in all.
std::vector<core::AxisRef> axesOfBatch(const plan::Plan& plan,
                                       const std::set<int>& stages);

// Divides, over the axes of B that they do not have yet, the states of the
// optimizer (zero: 1 and 2) and the parameters that are updated (3): along
// their largest dimension that these axes divide evenly, else their largest; in
// the stead of states that are a parameter's rows and columns its gradient.
// The rest follows from propagation: an update is computed as its states are
// divided, so gradients are reduced to shards; parameters that stay whole are
// gathered afterwards, divided ones where they are used. After the rounds of
// the plan's entries, before one of `priority`.
//
// Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion
// Parameter Models", 2020. Fails with a diagnostic where B has no axes or
// nothing is trained.
mlir::LogicalResult divideStates(mlir::ModuleOp module, const plan::Plan& plan,
                                 const Problem& problem, int priority,
                                 std::vector<core::Sharding>& shardings);

}  // namespace partita::sharding

#endif  // PARTITA_COMPILER_SHARDING_DIVIDE_STATES_H_
