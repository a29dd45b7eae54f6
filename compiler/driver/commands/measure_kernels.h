// Measures generated kernels on this machine.
#ifndef PARTITA_COMPILER_DRIVER_COMMANDS_MEASURE_KERNELS_H_
#define PARTITA_COMPILER_DRIVER_COMMANDS_MEASURE_KERNELS_H_

#include "absl/status/statusor.h"
#include "compiler/driver/session.h"
#include "compiler/measure/measure.h"

namespace partita::driver {

struct KernelCosts {
  // Tables planner::kCopyName, kUpdateName and AttentionName of both
  // directions.
  planner::RateTables tables;
  double cycle = 0;   // seconds per cycle that the compiler estimates
  double launch = 0;  // seconds of a kernel with next to no work
};

// Compiles small kernels, the same for all devices, and runs them.
absl::StatusOr<KernelCosts> measureKernels(
    Session& session, const measure::MeasureOptions& options);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_COMMANDS_MEASURE_KERNELS_H_
