// A plan without its pipeline, which runs all layers on the devices of one
// stage.
#ifndef PARTITA_COMPILER_PLAN_WITHOUT_DEPTH_H_
#define PARTITA_COMPILER_PLAN_WITHOUT_DEPTH_H_

#include "compiler/plan/plan.h"

namespace partita::plan {

// The same plan on the devices of one stage. Removes D, its axes, the schedule,
// the stages and entries scoped to stages. Also removes `memory` and `budgets`,
// which apply to the pipeline. Keeps axes of which D uses only a part.
Plan WithoutDepth(Plan plan);

// Removes an axis from the mesh and from every entry.
void RemoveAxis(Plan& plan, int axis);

// Gives a mesh axis another size, in every entry too. Entries and overrides
// must not use parts of the axis, and overrides must not use it at all. A size
// of 1 removes the axis.
void ResizeAxis(Plan& plan, int axis, int64_t size);

}  // namespace partita::plan

#endif  // PARTITA_COMPILER_PLAN_WITHOUT_DEPTH_H_
