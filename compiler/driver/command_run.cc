// partita run and partita train: partita-run under other names.
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "compiler/driver/commands.h"
#include "compiler/driver/session.h"
#include "llvm/Support/raw_ostream.h"

namespace partita::driver {
namespace {

namespace fs = std::filesystem;

// Becomes partita-run, which lies beside this program (installed) or in
// runtime/tools (built).
int run(const std::vector<std::string>& arguments,
        const char* command = nullptr) {
  std::error_code error;
  fs::path self = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const fs::path& candidate :
       {self / "partita-run", self / "../../runtime/tools/partita-run"}) {
    if (!fs::exists(candidate, error)) continue;
    std::vector<char*> argv = {const_cast<char*>("partita-run")};
    if (command != nullptr) argv.push_back(const_cast<char*>(command));
    for (const std::string& argument : arguments)
      argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    execv(candidate.c_str(), argv.data());
  }
  llvm::errs() << "error: expected the program partita-run beside "
               << self.string() << "/partita, found none that can be started\n";
  return kInternalError;
}

}  // namespace

Command addRun(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("run", "Run an artifact (see partita-run --help)")
          ->prefix_command();
  command->set_help_flag();
  return {command, [command] { return run(command->remaining()); }};
}

Command addTrain(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("train",
                         "Train a model compiled with --train (see partita-run "
                         "train --help)")
          ->prefix_command();
  command->set_help_flag();
  return {command, [command] { return run(command->remaining(), "train"); }};
}

}  // namespace partita::driver
