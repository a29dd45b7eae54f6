// The command line: its commands, and errors about unknown ones.
#include "compiler/driver/commands/cli.h"

#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "compiler/driver/commands/commands.h"
#include "compiler/driver/session.h"
#include "compiler/plan/text.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"
#include "runtime/base/version.h"

namespace partita::driver {
namespace {

// Reports the first unknown command or option, if there is one. The parser may
// report a missing argument first, which would hide the typo.
bool explainUnknown(const CLI::App& app) {
  std::vector<std::string> commands;
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    commands.push_back(command->get_name());
    std::vector<std::string> options;
    for (const CLI::Option* option : command->get_options())
      for (const std::string& name : option->get_lnames())
        options.push_back("--" + name);
    if (!command->parsed()) continue;
    for (const std::string& word : command->remaining()) {
      if (word.size() < 2 || word[0] != '-') continue;
      llvm::errs() << "error: partita " << command->get_name()
                   << " has no option '" << word << "'"
                   << plan::Suggest(word.substr(0, word.find('=')), options)
                   << "\n";
      return true;
    }
  }
  for (const std::string& word : app.remaining()) {
    llvm::errs() << "error: expected a command, one of "
                 << llvm::join(commands, ", ") << "; found '" << word << "'"
                 << plan::Suggest(word, commands) << "\n";
    return true;
  }
  return false;
}

int runCommand(int argc, char** argv) {
  CLI::App app(
      "Partita: one model graph, divided over many devices, compiled and run.",
      "partita");
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string("partita ") + base::kVersion);
  app.footer(
      "Example:\n  partita compile gpt2/ --dim batch=1,seq=128 -o gpt2.partita "
      "&& partita run gpt2.partita --input input_ids=random:0:100");
  const std::vector<Command> commands = {
      addImport(app),   addCompile(app),  addExplain(app), addVerify(app),
      addAnnotate(app), addInspect(app),  addRun(app),     addTrain(app),
      addPlanner(app),  addSimulate(app), addMeasure(app), addSlurm(app)};
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0 && explainUnknown(app)) return kUsageError;
    return app.exit(error) == 0 ? kSuccess : kUsageError;
  }
  for (const Command& command : commands)
    if (command.app->parsed()) return command.run();
  return kUsageError;
}

}  // namespace

int runPartita(int argc, char** argv) {
  return finishOutput(runCommand(argc, argv));
}

}  // namespace partita::driver
