// Reads the output of partita plan --json, for the report on its plan.
#ifndef PARTITA_COMPILER_DRIVER_SIMULATE_READ_CHOICE_H_
#define PARTITA_COMPILER_DRIVER_SIMULATE_READ_CHOICE_H_

#include <string>

#include "absl/status/statusor.h"
#include "compiler/simulator/report.h"
#include "runtime/program/program_generated.h"

namespace partita::driver {

// The plan in the file `path`, its runners-up, and its gains on better
// hardware. Refuses other files, and a plan for another mesh than the
// program's.
absl::StatusOr<simulator::ReportPlan> readChoice(
    const std::string& path, const program::Program& program);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_SIMULATE_READ_CHOICE_H_
