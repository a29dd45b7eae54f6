// Merges the last steps of independent reductions.
#ifndef PARTITA_COMPILER_KERNELS_MERGE_LATE_STEPS_H_
#define PARTITA_COMPILER_KERNELS_MERGE_LATE_STEPS_H_

#include "compiler/kernels/fusion_groups.h"

namespace partita::kernels {

// Makes one group of all groups that are the same step, counted from the last,
// of split reductions (kLateStepAttr) and that do not depend on each other.
// Their inputs, partial results, are small: a launch takes longer than the
// work, and the partial results may stay in memory until the merged kernel
// runs. Groups with a function call or a transfer between them stay apart.
void mergeLateSteps(mlir::Block& block, FusionGroups& fusion);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_MERGE_LATE_STEPS_H_
