// The command line: its commands, and errors about unknown ones.
#include "compiler/driver/commands/cli.h"

#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "compiler/driver/commands/commands.h"
#include "compiler/driver/console.h"
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
      messages() << "error: partita " << command->get_name()
                 << " has no option '" << word << "'"
                 << plan::Suggest(word.substr(0, word.find('=')), options)
                 << "\n";
      return true;
    }
  }
  for (const std::string& word : app.remaining()) {
    messages() << "error: expected a command, one of "
               << llvm::join(commands, ", ") << "; found '" << word << "'"
               << plan::Suggest(word, commands) << "\n";
    return true;
  }
  return false;
}

// The message of a parse error, with what was expected and found. The parser's
// own wording is kept where it has both.
std::string reword(const CLI::ParseError& error) {
  const std::string text = error.what(), name = error.get_name();
  const auto around = [&](const std::string& middle) {
    const size_t at = text.find(middle);
    return at == std::string::npos
               ? std::pair(text, std::string())
               : std::pair(text.substr(0, at), text.substr(at + middle.size()));
  };
  if (name == "RequiredError") {
    const std::string missing = around(" is required").first;
    return "expected " + (missing == "A subcommand" ? "a command" : missing) +
           ", found none";
  }
  if (name == "ArgumentMismatch") {
    const auto [option, rest] = around(": ");
    if (llvm::StringRef(rest).ends_with(" missing"))
      return "expected a value after " + option + ", found none";
  }
  if (const auto [option, rest] = around(": Value ");
      name == "ValidationError" && !rest.empty()) {
    const size_t middle = rest.find(" not in range ");
    if (middle != std::string::npos)
      return option + ": expected " + rest.substr(middle + 14) + ", found " +
             rest.substr(0, middle);
  }
  if (const auto [option, rest] = around(": At Most 1 required but received ");
      !rest.empty())
    return option + ": expected once, found " + rest + " times";
  if (const auto [option, other] = around(" requires ");
      name == "RequiresError")
    return "expected " + other + " with " + option + ", found none";
  if (const auto [option, other] = around(" excludes ");
      name == "ExcludesError")
    return "expected one of " + option + " and " + other + ", found both";
  // This error has the name of the command instead.
  if (const auto [start, extra] = around(" not expected: ");
      error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError) &&
      !extra.empty())
    return "expected no further arguments, found '" + extra + "'";
  return text;
}

}  // namespace

int runCommand(int argc, const char* const* argv) {
  CLI::App app(
      "Partita: one model graph, divided over many devices, compiled and run.",
      "partita");
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string("partita ") + base::kVersion);
  app.footer(
      "Example:\n  partita compile gpt2/ --dim batch=1,seq=128 -o gpt2.partita "
      "&& partita run gpt2.partita --input input_ids=random:0:100");
  const std::vector<Command> commands = {
      addImport(app),   addCompile(app), addExplain(app),  addVerify(app),
      addAnnotate(app), addInspect(app), addRun(app),      addGenerate(app),
      addTrain(app),    addPlanner(app), addSimulate(app), addMeasure(app),
      addSlurm(app),    addLora(app),    addPrune(app)};
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      std::ostringstream text;  // help, or the version
      app.exit(error, text, text);
      results() << text.str();
      return kSuccess;
    }
    if (explainUnknown(app)) return kUsageError;
    std::string command = "partita";
    for (const CLI::App* parsed = &app; !parsed->get_subcommands().empty();) {
      parsed = parsed->get_subcommands().front();
      command += " " + parsed->get_name();
    }
    messages() << "error: " << reword(error) << "\nTry " << command
               << " --help.\n";
    return kUsageError;
  }
  for (const Command& command : commands)
    if (command.app->parsed()) return command.run();
  return kUsageError;
}

int runPartita(int argc, char** argv) {
  return finishOutput(runCommand(argc, argv));
}

}  // namespace partita::driver
