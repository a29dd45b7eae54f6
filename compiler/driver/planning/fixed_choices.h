// Choices of `--fix`, which the search must keep, applied to plans.
#ifndef PARTITA_COMPILER_DRIVER_PLANNING_FIXED_CHOICES_H_
#define PARTITA_COMPILER_DRIVER_PLANNING_FIXED_CHOICES_H_

#include <cstdint>

#include "absl/status/status.h"
#include "compiler/plan/plan.h"
#include "compiler/planner/search/search.h"

namespace partita::driver {

// Refuses choices that no plan by layer can have, with "--fix NAME: expected
// ..., found ...". Such a plan has a mesh of pipe, data and tensor axes over
// `devices` devices, and `batch` samples per step.
absl::Status checkFixedOfLayers(const planner::FixedChoices& fixed,
                                int64_t devices, int64_t batch);

// True if the plan has every fixed choice. `batch` is the samples per step.
bool keepsTo(const plan::Plan& plan, const planner::FixedChoices& fixed,
             int64_t batch);

// Sets ZeRO, microbatches, recomputation and offload to the fixed choices.
// A number of microbatches that does not divide the batch is not set.
void applyFixed(const planner::FixedChoices& fixed, int64_t batch,
                plan::Plan& plan);

// The schedule of a new pipeline: the fixed one, or else 1F1B.
plan::Schedule scheduleOf(const planner::FixedChoices& fixed);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_PLANNING_FIXED_CHOICES_H_
