// A plan without its pipeline: what one stage's devices do of all layers.
#ifndef PARTITA_COMPILER_PLAN_WITHOUT_DEPTH_H_
#define PARTITA_COMPILER_PLAN_WITHOUT_DEPTH_H_

#include "compiler/plan/plan.h"

namespace partita::plan {

// The same plan on one stage's devices: D, its axes, the schedule, the stages
// and what holds in some stages only are gone, and so are limits and budgets,
// which are of the whole. Axes that D has a part of stay.
Plan WithoutDepth(Plan plan);

// Removes an axis from the mesh and from all that is sharded over it.
void RemoveAxis(Plan& plan, int axis);

}  // namespace partita::plan

#endif  // PARTITA_COMPILER_PLAN_WITHOUT_DEPTH_H_
