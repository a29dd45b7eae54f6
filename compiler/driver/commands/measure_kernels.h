// What generated kernels take on this machine.
#ifndef PARTITA_COMPILER_DRIVER_COMMANDS_MEASURE_KERNELS_H_
#define PARTITA_COMPILER_DRIVER_COMMANDS_MEASURE_KERNELS_H_

#include "absl/status/statusor.h"
#include "compiler/driver/session.h"
#include "compiler/measure/measure.h"

namespace partita::driver {

struct KernelCosts {
  // planner::kCopyName, kUpdateName and AttentionName of both directions.
  planner::RateTables tables;
  double cycle = 0;   // seconds of a cycle of the compiler's estimates
  double launch = 0;  // seconds of a kernel that has nothing to do
};

// Compiles some, for all devices alike, and runs them.
absl::StatusOr<KernelCosts> measureKernels(
    Session& session, const measure::MeasureOptions& options);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_COMMANDS_MEASURE_KERNELS_H_
