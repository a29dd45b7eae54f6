// partita simulate: simulates a compiled program on a cluster that need not
// exist.
#include <limits>
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "compiler/driver/commands/command_options.h"
#include "compiler/driver/commands/commands.h"
#include "compiler/driver/console.h"
#include "compiler/driver/planning/price_row.h"
#include "compiler/driver/simulate/simulate.h"
#include "compiler/driver/simulate/sweep.h"
#include "compiler/driver/zero_one.h"
#include "compiler/simulator/faults.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace partita::driver {
namespace {

struct SimulateCommand {
  SimulateArguments arguments;
  SweepArguments sweep;
  bool json = false;
};

int runSweep(SimulateCommand& command) {
  if (command.sweep.output.empty()) {
    complain(
        "--sweep: expected -o FILE, where to write the table with predictions");
    return kUsageError;
  }
  command.sweep.cluster = command.arguments.cluster;
  llvm::json::Value facts = nullptr;
  RowPricer pricer;
  if (!take(predictRows(command.sweep,
                        [&](const planner::SweepRow& row) {
                          return pricer.price(row);
                        }),
            facts))
    return kUserError;
  show(facts, command.json, printSweep);
  const llvm::json::Object& result = *facts.getAsObject();
  const auto number = [&](llvm::StringRef key) {
    return result.getInteger(key).value_or(0);
  };
  if (const int64_t others = number("other_gpus"); others > 0)
    messages() << "warning: --cluster: of " << number("rows") << " rows "
               << others << " have another gpu, the first '"
               << result.getString("other_gpu").value_or("")
               << "', and are predicted on "
               << result.getString("device").value_or("")
               << "; leave out --cluster to predict each on its own\n";
  if (const int64_t others = number("other_frameworks"); others > 0)
    messages() << "warning: framework: of " << number("rows") << " rows "
               << others << " have one that is not known, the first '"
               << result.getString("other_framework").value_or("")
               << "', and are predicted as Megatron-Core\n";
  return number("predicted") == 0 ? kUserError : kSuccess;
}

int run(SimulateCommand& command) {
  const SimulateArguments& arguments = command.arguments;
  if (!keepsInputFiles({{arguments.artifact, arguments.cluster,
                         arguments.choice, command.sweep.rows},
                        {{"-o", command.sweep.output},
                         {"--trace", arguments.trace},
                         {"--html", arguments.html}}}))
    return kUsageError;
  if (!command.sweep.rows.empty()) return runSweep(command);
  if (command.arguments.artifact.empty() || command.arguments.cluster.empty()) {
    complain(
        "expected a compiled model (.partita) and --cluster, or --sweep "
        "ROWS.csv");
    return kUsageError;
  }
  if (std::string wrong = refuseFolderOfSteps(arguments.artifact);
      !wrong.empty()) {
    complain(wrong);
    return kUserError;
  }
  // Check the syntax first; which ranks exist is known only with the program.
  simulator::Faults faults;
  if (!take(simulator::ParseFaults(command.arguments.faults,
                                   std::numeric_limits<int64_t>::max()),
            faults))
    return kUsageError;
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
  CLI::Option* model = command->add_option("model", arguments.artifact,
                                           "A compiled model (.partita)");
  command->add_option(
      "--cluster", arguments.cluster,
      "A cluster.yaml, or a name: a100-80-sxm, \"64x h100-sxm\", "
      "\"2 nodes x v100-32-sxm2\", jean-zay-a100");
  CLI::Option* fault =
      command
          ->add_option("--fault", arguments.faults,
                       "Slow down a device to this share of its speed, or a "
                       "link to this share of its bandwidth: device=3:0.5, "
                       "link=0-1:0.1, link=2:0.5")
          ->allow_extra_args(false);
  CLI::Option* trace =
      command->add_option("--trace", arguments.trace,
                          "Write a timeline for Perfetto or chrome://tracing");
  CLI::Option* html =
      command->add_option("--html", arguments.html,
                          "Write a report: one page that needs no network");
  command
      ->add_option("--choice", arguments.choice,
                   "Show this output of partita plan --json in the report: the "
                   "plan and its runners-up")
      ->needs(html);
  command
      ->add_option("--operations", arguments.operations,
                   "List this many of the most expensive operations")
      ->check(wholeNumber(0));
  CLI::Option* sweep =
      command
          ->add_option("--sweep", state->sweep.rows,
                       "Predict every row of a table of configurations (CSV) "
                       "instead: rows with a framework by formulas, all others "
                       "by compiling and simulating the family's model")
          ->excludes(model, fault, trace, html);
  command
      ->add_option("-o,--output", state->sweep.output,
                   "Write the table with predictions to this file")
      ->needs(sweep);
  addJson(state->json, command);
  command->footer(
      "Examples:\n  partita simulate gpt2.partita --cluster \"16x "
      "a100-80-sxm\" "
      "--trace trace.json\n  partita plan gpt2/ --cluster \"16x a100-80-sxm\" "
      "-o "
      "plan.yaml --json > choice.json\n  partita simulate gpt2.partita "
      "--cluster \"16x a100-80-sxm\" --html report.html --choice "
      "choice.json\n  partita simulate --sweep rows.csv -o "
      "predicted.csv");
  return {command, [state] { return run(*state); }};
}

}  // namespace partita::driver
