// Plans that differ from a given plan in a single choice: its neighbours in a
// search by price.
#ifndef PARTITA_COMPILER_DRIVER_PLANNING_VARY_PLAN_H_
#define PARTITA_COMPILER_DRIVER_PLANNING_VARY_PLAN_H_

#include <vector>

#include "compiler/plan/plan.h"
#include "compiler/planner/search/search.h"

namespace partita::driver {

// Varies the level of ZeRO, recomputation, microbatches, rings of attention
// over the axis `context`, half of an axis to another one or to the pipeline
// and back, and the sequence over the axis of M and N. Moves the optimizer's
// states from the host to the devices, and to the host if `offloads` is true.
// `batch` is the samples per step. Choices in `fixed` do not change. Some of
// these plans do not compile: the compiler refuses sizes that do not fit
// together.
std::vector<plan::Plan> variationsOf(const plan::Plan& plan, int64_t batch,
                                     const planner::FixedChoices& fixed,
                                     bool offloads = false);

// Pipelines of 2, 4, ... stages over the devices, with the batch over the
// remaining devices, in the precision of `like`. Estimates by layer propose no
// pipelines. All plans have the choices in `fixed`.
std::vector<plan::Plan> pipelinesLike(const plan::Plan& like, int64_t batch,
                                      const planner::FixedChoices& fixed);

// Extends a plan for one of `stages` equal groups of devices to all of them: a
// pipeline with the choices in `fixed`.
plan::Plan withPipeline(plan::Plan plan, int64_t stages, int64_t batch,
                        const planner::FixedChoices& fixed);

// "pipe 4 x data 8 x tensor 2: B data, D pipe; M N V tensor; zero 1, ...": one
// line for people.
std::string describePlan(const plan::Plan& plan);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_PLANNING_VARY_PLAN_H_
