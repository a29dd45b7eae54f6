// Other divisions of a mixture's experts, for the plans of the planner.
#ifndef PARTITA_COMPILER_DRIVER_PLANNING_VARY_EXPERTS_H_
#define PARTITA_COMPILER_DRIVER_PLANNING_VARY_EXPERTS_H_

#include <cstdint>
#include <vector>

#include "compiler/plan/plan.h"
#include "compiler/planner/search/search.h"

namespace partita::driver {

// Divides `experts` experts over none, half, twice or all of the devices among
// which the batch is divided, and over the axis `tensor` or not. Devices for
// the batch are the axes `data` and `expert`, which divides the experts, too;
// there is no `expert` where all of them do. Only numbers of devices that
// divide the experts. Empty if `fixed` sets ep, and for plans with parts of
// axes.
std::vector<plan::Plan> expertsOtherwise(const plan::Plan& plan,
                                         int64_t experts,
                                         const planner::FixedChoices& fixed);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_PLANNING_VARY_EXPERTS_H_
