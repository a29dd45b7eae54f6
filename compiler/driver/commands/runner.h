// Finds partita-run and runs it as a separate process.
#ifndef PARTITA_COMPILER_DRIVER_COMMANDS_RUNNER_H_
#define PARTITA_COMPILER_DRIVER_COMMANDS_RUNNER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace partita::driver {

// Path of partita-run: beside this program (installed) or in runtime/tools
// (built). NotFound if it is in neither.
absl::StatusOr<std::string> findRunner();

// Runs partita-run and returns its standard output. Its messages go to our
// standard error. Aborted if its exit code is not 0.
absl::StatusOr<std::string> outputOfRunner(
    const std::vector<std::string>& arguments);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_COMMANDS_RUNNER_H_
