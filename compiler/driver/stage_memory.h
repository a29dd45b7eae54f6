// Memory that the stages of a pipeline take on a device, measured before they
// are cut.
#ifndef PARTITA_COMPILER_DRIVER_STAGE_MEMORY_H_
#define PARTITA_COMPILER_DRIVER_STAGE_MEMORY_H_

#include "compiler/driver/train_options.h"
#include "compiler/pipeline/passes.h"
#include "compiler/plan/plan.h"

namespace partita::driver {

// The limit is the plan's `memory`, shared by the stages of a device, and comes
// with the activations and weights that the schedule keeps. Without a limit,
// nothing is measured. Measuring is a trial on a copy of the model with its
// gradients, optimizer and shardings, as the next phases make them. `train` may
// be null.
pipeline::StageMemory stageMemory(const plan::Plan& plan,
                                  const TrainOptions* train);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_STAGE_MEMORY_H_
