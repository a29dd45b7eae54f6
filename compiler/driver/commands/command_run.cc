// partita run and partita train: start partita-run.
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "compiler/driver/commands/command_options.h"
#include "compiler/driver/commands/commands.h"
#include "compiler/driver/commands/runner.h"

namespace partita::driver {
namespace {

// Replaces this process by partita-run.
int run(const std::vector<std::string>& arguments,
        const char* command = nullptr) {
  std::string runner;
  if (!take(findRunner(), runner)) return kInternalError;
  std::vector<char*> argv = {const_cast<char*>("partita-run")};
  if (command != nullptr) argv.push_back(const_cast<char*>(command));
  for (const std::string& argument : arguments)
    argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  execv(runner.c_str(), argv.data());
  complain(runner + ": " + std::strerror(errno));
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
