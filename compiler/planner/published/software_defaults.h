// Values that software chooses if a row of a sweep does not give them.
#ifndef PARTITA_COMPILER_PLANNER_PUBLISHED_SOFTWARE_DEFAULTS_H_
#define PARTITA_COMPILER_PLANNER_PUBLISHED_SOFTWARE_DEFAULTS_H_

#include "compiler/planner/published/sweep.h"

namespace partita::planner {

// Fills in the layers of each stage and the size of a microbatch. Notes the
// latter in the row's defaults.
void ApplySoftwareDefaults(SweepRow& row);

}  // namespace partita::planner

#endif  // PARTITA_COMPILER_PLANNER_PUBLISHED_SOFTWARE_DEFAULTS_H_
