// partita-run generate: generates texts and reports their speed.
#ifndef PARTITA_RUNTIME_TOOLS_GENERATE_COMMAND_H_
#define PARTITA_RUNTIME_TOOLS_GENERATE_COMMAND_H_

#include <ostream>
#include <string>
#include <vector>

namespace partita::tools {

// `arguments` exclude "generate". Returns the exit code.
int GenerateCommand(const std::vector<std::string>& arguments,
                    std::ostream& out, std::ostream& error);

}  // namespace partita::tools

#endif  // PARTITA_RUNTIME_TOOLS_GENERATE_COMMAND_H_
