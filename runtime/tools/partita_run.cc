// partita-run: runs a compiled model.
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "runtime/tools/run_command.h"

int main(int argc, char** argv) {
  try {
    return partita::tools::RunCommand(
        std::vector<std::string>(argv + 1, argv + argc), std::cout, std::cerr);
  } catch (const std::exception& exception) {
    // Partita does not throw; the standard library does when memory runs out.
    std::cerr << "partita-run: " << exception.what() << "\n";
    return 70;
  }
}
