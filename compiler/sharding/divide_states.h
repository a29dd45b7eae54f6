// ZeRO, expressed as shardings.
#ifndef PARTITA_COMPILER_SHARDING_DIVIDE_STATES_H_
#define PARTITA_COMPILER_SHARDING_DIVIDE_STATES_H_

#include <set>
#include <vector>

#include "compiler/plan/plan.h"
#include "compiler/sharding/problem.h"

namespace partita::sharding {

// Returns the axes that the plan's entries assign to B.
std::vector<core::AxisRef> axesOfBatch(const plan::Plan& plan);
// Returns the axes that divide B in the given pipeline stages; in any stage if
// `stages` is empty.
std::vector<core::AxisRef> axesOfBatch(const plan::Plan& plan,
                                       const std::set<int>& stages);

// Divides training state over the axes of B: optimizer states (zero: 1 and 2),
// and updated parameters too (zero: 3). Each tensor is divided along its
// largest dimension that these axes divide evenly, else along its largest
// dimension. For states that hold a parameter's row or column statistics, the
// gradient is divided instead. Axes that the tensor already uses are not added.
//
// Propagation does the rest. An update is computed with the sharding of its
// states, so gradients are reduced to shards. Replicated parameters are
// gathered after the update, divided parameters where they are used. Runs after
// the plan's entries; the added axes get `priority`.
//
// Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion
// Parameter Models", 2020. Fails with a diagnostic if B has no axes or the
// module does not train.
mlir::LogicalResult divideStates(mlir::ModuleOp module, const plan::Plan& plan,
                                 const Problem& problem, int priority,
                                 std::vector<core::Sharding>& shardings);

}  // namespace partita::sharding

#endif  // PARTITA_COMPILER_SHARDING_DIVIDE_STATES_H_
