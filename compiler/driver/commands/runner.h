// partita-run as a program of its own.
#ifndef PARTITA_COMPILER_DRIVER_COMMANDS_RUNNER_H_
#define PARTITA_COMPILER_DRIVER_COMMANDS_RUNNER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace partita::driver {

// Where it is: beside this program (installed) or in runtime/tools (built).
// NotFound where it is not.
absl::StatusOr<std::string> findRunner();

// What it writes to standard output; its messages go to ours. Aborted where it
// ends with another code than 0.
absl::StatusOr<std::string> outputOfRunner(
    const std::vector<std::string>& arguments);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_COMMANDS_RUNNER_H_
