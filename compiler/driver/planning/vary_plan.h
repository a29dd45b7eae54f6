// Plans that differ from one in a single choice, as a person would try them:
// the neighbours of a plan in a search by price.
#ifndef PARTITA_COMPILER_DRIVER_PLANNING_VARY_PLAN_H_
#define PARTITA_COMPILER_DRIVER_PLANNING_VARY_PLAN_H_

#include <vector>

#include "compiler/plan/plan.h"
#include "compiler/planner/search/search.h"

namespace partita::driver {

// ZeRO's level, recomputation, microbatches, half of an axis to another one or
// to the pipeline and back, the sequence over the axis of M and N, the
// optimizer's states back to the devices, and to the host where `offloads`.
// `batch` is the samples of a step; what is `fixed` stays. Not all of them
// compile: sizes that do not go together are left to the compiler to refuse.
std::vector<plan::Plan> variationsOf(const plan::Plan& plan, int64_t batch,
                                     const planner::FixedChoices& fixed,
                                     bool offloads = false);

// Pipelines of 2, 4, ... stages over the devices, the batch over what remains,
// in the precision of `like`: estimates by layer have none. All have what is
// `fixed`.
std::vector<plan::Plan> pipelinesLike(const plan::Plan& like, int64_t batch,
                                      const planner::FixedChoices& fixed);

// `plan`, of one of `stages` equal groups of devices, on all of them: a
// pipeline with what is `fixed`.
plan::Plan withPipeline(plan::Plan plan, int64_t stages, int64_t batch,
                        const planner::FixedChoices& fixed);

// "pipe 4 x data 8 x tensor 2: B data, D pipe; M N V tensor; zero 1, ...": one
// line for people.
std::string describePlan(const plan::Plan& plan);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_PLANNING_VARY_PLAN_H_
