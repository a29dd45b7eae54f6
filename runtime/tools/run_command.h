// partita-run as a function.
#ifndef PARTITA_RUNTIME_TOOLS_RUN_COMMAND_H_
#define PARTITA_RUNTIME_TOOLS_RUN_COMMAND_H_

#include <ostream>
#include <string>
#include <vector>

namespace partita::tools {

// `arguments` exclude the program's name; RunHelp describes them. Results go to
// `out`, messages to `error`. Returns the exit code: 0, 1 (files or inputs), 2
// (command line) or 70 (a bug in Partita).
int RunCommand(const std::vector<std::string>& arguments, std::ostream& out,
               std::ostream& error);

}  // namespace partita::tools

#endif  // PARTITA_RUNTIME_TOOLS_RUN_COMMAND_H_
