// What partita plan --json printed, for the report of what became of it.
#ifndef PARTITA_COMPILER_DRIVER_SIMULATE_READ_CHOICE_H_
#define PARTITA_COMPILER_DRIVER_SIMULATE_READ_CHOICE_H_

#include <string>

#include "absl/status/statusor.h"
#include "compiler/simulator/report.h"
#include "runtime/program/program_generated.h"

namespace partita::driver {

// The plan in the file `path`, its runners-up and what more of the machine
// would save. Refuses a file of something else, and a plan of another mesh than
// the program's.
absl::StatusOr<simulator::ReportPlan> readChoice(
    const std::string& path, const program::Program& program);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_SIMULATE_READ_CHOICE_H_
