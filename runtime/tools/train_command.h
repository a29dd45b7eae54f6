// partita-run train as a function.
#ifndef PARTITA_RUNTIME_TOOLS_TRAIN_COMMAND_H_
#define PARTITA_RUNTIME_TOOLS_TRAIN_COMMAND_H_

#include <ostream>
#include <string>
#include <vector>

namespace partita::tools {

// `arguments` exclude the program's name and "train". Returns the exit code.
// Results go to `out`, progress and errors to `error`.
int TrainCommand(const std::vector<std::string>& arguments, std::ostream& out,
                 std::ostream& error);

}  // namespace partita::tools

#endif  // PARTITA_RUNTIME_TOOLS_TRAIN_COMMAND_H_
