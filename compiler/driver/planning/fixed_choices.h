// --fix on plans: what the search may not choose.
#ifndef PARTITA_COMPILER_DRIVER_PLANNING_FIXED_CHOICES_H_
#define PARTITA_COMPILER_DRIVER_PLANNING_FIXED_CHOICES_H_

#include <cstdint>

#include "absl/status/status.h"
#include "compiler/plan/plan.h"
#include "compiler/planner/search/search.h"

namespace partita::driver {

// Refuses, as "--fix NAME: expected ..., found ...", choices that no plan by
// layer over `devices` devices has: of a mesh of pipe, data and tensor axes and
// a step of `batch` samples.
absl::Status checkFixedOfLayers(const planner::FixedChoices& fixed,
                                int64_t devices, int64_t batch);

// True where the plan, of a step of `batch` samples, has every fixed choice.
bool keepsTo(const plan::Plan& plan, const planner::FixedChoices& fixed,
             int64_t batch);

// Sets ZeRO, microbatches, recomputation and offload to the fixed choices.
// Microbatches that do not divide the batch stay as they are.
void applyFixed(const planner::FixedChoices& fixed, int64_t batch,
                plan::Plan& plan);

// The schedule of a new pipeline: the fixed one, else 1F1B.
plan::Schedule scheduleOf(const planner::FixedChoices& fixed);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_PLANNING_FIXED_CHOICES_H_
