// partita run and partita train: start partita-run.
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "compiler/core/precision.h"
#include "compiler/driver/commands/command_options.h"
#include "compiler/driver/commands/commands.h"
#include "compiler/driver/commands/measured_machine.h"
#include "compiler/driver/commands/runner.h"
#include "compiler/planner/cluster/cluster.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FormatVariadic.h"

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

// Returns --limits with the speeds that `partita measure` wrote for this
// machine, summed over its devices; empty if it wrote nothing, or for a GPU.
std::string limitsOfMachine() {
  const std::optional<planner::Cluster> cluster = measuredMachine();
  if (!cluster) return "";
  const double devices = cluster->devices;
  std::string limits;
  const auto add = [&](llvm::StringRef name, double limit) {
    if (limit > 0)
      limits += llvm::formatv("{0}{1}={2:E4}", limits.empty() ? "" : ",", name,
                              devices * limit);
  };
  for (const core::Precision precision :
       {core::Precision::kF32, core::Precision::kBF16, core::Precision::kF16})
    add(core::ToString(precision),
        cluster->device.peak[static_cast<size_t>(precision)]);
  add("memory", cluster->device.memory_bandwidth);
  return limits;
}

// The arguments of `partita run`, with the machine's limits if they are known
// and the profile is asked for.
std::vector<std::string> withLimits(std::vector<std::string> arguments) {
  const auto has = [&](llvm::StringRef flag) {
    return llvm::any_of(arguments, [&](llvm::StringRef argument) {
      return argument.split('=').first == flag;
    });
  };
  if (!has("--profile") || has("--limits")) return arguments;
  const std::string limits = limitsOfMachine();
  if (!limits.empty()) arguments.push_back("--limits=" + limits);
  return arguments;
}

}  // namespace

Command addRun(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("run", "Run an artifact (see partita-run --help)")
          ->prefix_command();
  command->set_help_flag();
  return {command, [command] { return run(withLimits(command->remaining())); }};
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
