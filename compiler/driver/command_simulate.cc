// partita simulate: a compiled program on a cluster that need not be there.
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "compiler/driver/command_options.h"
#include "compiler/driver/commands.h"
#include "compiler/driver/simulate.h"

namespace partita::driver {
namespace {

struct SimulateCommand {
  SimulateArguments arguments;
  bool json = false;
};

int run(const SimulateCommand& command) {
  llvm::json::Value facts = nullptr;
  if (!take(simulateArtifact(command.arguments), facts)) return kUserError;
  show(facts, command.json, printSimulation);
  return kSuccess;
}

}  // namespace

Command addSimulate(CLI::App& app) {
  auto state = std::make_shared<SimulateCommand>();
  SimulateArguments& arguments = state->arguments;
  CLI::App* command = app.add_subcommand(
      "simulate", "Run a compiled program against the model of a cluster");
  command
      ->add_option("model", arguments.artifact, "A compiled model (.partita)")
      ->required();
  command
      ->add_option("--cluster", arguments.cluster,
                   "A cluster.yaml, or a name: a100-80-sxm, \"64x h100-sxm\", "
                   "\"2 nodes x v100-32-sxm2\", jean-zay-a100")
      ->required();
  command
      ->add_option("--fault", arguments.faults,
                   "What is slow, and the share of its speed that is left: "
                   "device=3:0.5, link=0-1:0.1, link=2:0.5")
      ->allow_extra_args(false);
  command->add_option("--trace", arguments.trace,
                      "Write a timeline for Perfetto or chrome://tracing");
  command->add_option("--html", arguments.html,
                      "Write a report: one page that needs no network");
  command
      ->add_option("--operations", arguments.operations,
                   "How many of the most expensive operations to list")
      ->check(CLI::NonNegativeNumber);
  addJson(state->json, command);
  command->footer(
      "Example:\n  partita simulate gpt2.partita --cluster \"16x a100-80-sxm\" "
      "--trace trace.json");
  return {command, [state] { return run(*state); }};
}

}  // namespace partita::driver
