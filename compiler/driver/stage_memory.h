// How much of a device's memory the stages of a pipeline take, told before they
// are cut.
#ifndef PARTITA_COMPILER_DRIVER_STAGE_MEMORY_H_
#define PARTITA_COMPILER_DRIVER_STAGE_MEMORY_H_

#include "compiler/driver/train_options.h"
#include "compiler/pipeline/passes.h"
#include "compiler/plan/plan.h"

namespace partita::driver {

// The `memory` of a plan that divides depth, shared by the stages of a device,
// beside what the schedule keeps of them; without it no limit, and nothing is
// measured. What is measured is a trial: a copy of the model with its
// gradients, optimizer and shardings, as the phases make them that come next.
// `train` may be null.
pipeline::StageMemory stageMemory(const plan::Plan& plan,
                                  const TrainOptions* train);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_STAGE_MEMORY_H_
