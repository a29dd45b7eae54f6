// This machine as `partita measure` described it.
#ifndef PARTITA_COMPILER_DRIVER_COMMANDS_MEASURED_MACHINE_H_
#define PARTITA_COMPILER_DRIVER_COMMANDS_MEASURED_MACHINE_H_

#include <optional>

#include "compiler/planner/cluster/cluster.h"

namespace partita::driver {

// Empty if the machine was not measured, or was measured as GPUs.
std::optional<planner::Cluster> measuredMachine();

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_COMMANDS_MEASURED_MACHINE_H_
