// partita generate: compiles a model that generates text, and starts
// partita-run.
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "compiler/driver/commands/command_options.h"
#include "compiler/driver/commands/commands.h"
#include "compiler/driver/commands/runner.h"
#include "compiler/driver/compile.h"
#include "compiler/driver/generation.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Program.h"

namespace partita::driver {
namespace {

namespace fs = std::filesystem;

// Options that partita-run generate reads. With `value` they take one.
struct Forwarded {
  const char* name;
  bool value;
  const char* help;
};
constexpr Forwarded kForwarded[] = {
    {"--prompt", true, "Go on from this text; may be repeated"},
    {"--prompts", true, "Go on from each line of this file"},
    {"--ids", true, "Go on from these token ids, as 1,2,3; may be repeated"},
    {"--max-new-tokens", true,
     "Add at most this many tokens to each prompt; default: 20"},
    {"--temperature", true,
     "Divide the scores by this and draw tokens at random; 0: take the best "
     "token, which is the default"},
    {"--top-k", true, "Draw among the best K tokens"},
    {"--top-p", true,
     "Draw among the best tokens whose probabilities add up to P"},
    {"--repetition-penalty", true,
     "Divide the positive scores of tokens that occurred by this, and multiply "
     "the negative ones"},
    {"--seed", true, "Seed of the random choices; default: 0"},
    {"--stop", true, "End a text before this string; may be repeated"},
    {"--ignore-end", false, "Go on after a token that ends the text"},
    {"--threads", true, "Use N threads over all devices"},
    {"--json", false, "Print one JSON object"},
};

struct GenerateCommand {
  GenerationOptions options;
  PlanArguments plan;
  std::map<std::string, std::vector<std::string>> values;
  std::map<std::string, bool> switches;
  const CLI::App* command = nullptr;

  bool hasPrompts() const {
    return command->count("--prompt") + command->count("--prompts") +
               command->count("--ids") >
           0;
  }
};

// Removes a temporary folder at the end.
struct Folder {
  std::string path;
  bool is_temporary = false;
  ~Folder() {
    std::error_code error;
    if (is_temporary) fs::remove_all(path, error);
  }
};

// The options for partita-run, in the order of the command line.
std::vector<std::string> forwarded(const GenerateCommand& command) {
  std::vector<std::string> words;
  std::map<std::string, size_t> taken;
  for (const CLI::Option* option : command.command->parse_order()) {
    const std::string name = option->get_name();
    if (command.values.count(name) == 0) continue;
    const size_t index = taken[name]++;
    if (index >= option->results().size()) continue;
    words.push_back(name);
    words.push_back(option->results()[index]);
  }
  for (const auto& [name, given] : command.switches)
    if (given) words.push_back(name);
  return words;
}

// Refuses options of the compilation for a model that is compiled.
ExitCode checkCompiled(const GenerateCommand& command) {
  for (const CLI::Option* option : command.command->parse_order()) {
    const std::string name = option->get_name();
    if (option->get_positional() || command.values.count(name) > 0 ||
        command.switches.count(name) > 0)
      continue;
    const std::string found =
        option->results().empty() ? "" : " " + option->results().front();
    complain("expected no " + name + " with a folder that is compiled (" +
             command.options.model + "), found " + name + found +
             "; compile the model itself with it");
    return kUsageError;
  }
  return kSuccess;
}

// Runs `partita-run generate` and returns its exit code.
int runGenerate(const std::string& model,
                const std::vector<std::string>& options) {
  std::string runner;
  if (!take(findRunner(), runner)) return kInternalError;
  llvm::SmallVector<llvm::StringRef> arguments = {"partita-run", "generate",
                                                  model};
  arguments.append(options.begin(), options.end());
  std::string message;
  const int code = llvm::sys::ExecuteAndWait(runner, arguments, std::nullopt,
                                             {}, 0, 0, &message);
  if (code >= 0) return code;
  complain(runner + ": " + message);
  return kInternalError;
}

// Checks all options that need no model, since compilations take long.
int checkOptions(const GenerateCommand& command) {
  if (!command.hasPrompts() && command.options.folder.empty()) {
    complain(
        "expected a prompt (--prompt TEXT, --prompts FILE or --ids 1,2,3), or "
        "a folder to write with -o; found none");
    return kUsageError;
  }
  std::vector<std::string> words = forwarded(command);
  // The libraries of Python, which pass --json alone, have no partita-run.
  if (words.empty() || words == std::vector<std::string>{"--json"})
    return kSuccess;
  words.push_back("--dry-run");
  return runGenerate(command.options.model, words);
}

// True if the model has a tokenizer or no text needs one; complains otherwise.
bool canReadTexts(const GenerateCommand& command) {
  const std::string& model = command.options.model;
  const auto is_given = [&](const char* option) {
    return command.command->count(option) > 0;
  };
  if ((!is_given("--prompt") && !is_given("--prompts") &&
       !is_given("--stop")) ||
      fs::exists(fs::path(model) / "tokenizer.json"))
    return true;
  complain(model +
           ": expected a folder with tokenizer.json for texts, found none; "
           "add the file, or give token ids with --ids");
  return false;
}

// Compiles the model into `folder`.
ExitCode compileInto(GenerateCommand& command, Folder& folder) {
  GenerationOptions& options = command.options;
  folder.path = options.folder;
  if (folder.path.empty()) {
    llvm::SmallString<128> path;
    if (llvm::sys::fs::createUniqueDirectory("partita-generate", path)) {
      complain("cannot make a temporary folder; name one with -o");
      return kUserError;
    }
    folder = {path.str().str(), /*is_temporary=*/true};
    options.folder = folder.path;
  }
  if (!finish(command.plan, options.compile.precision)) return kUsageError;
  if (ExitCode code = finish(command.plan, options.compile.plan);
      code != kSuccess)
    return code;
  if (std::string wrong = checkMachine(options.compile); !wrong.empty()) {
    complain(wrong);
    return kUsageError;
  }
  Fault fault = Fault::kUser;
  return mlir::succeeded(compileGeneration(options, fault)) ? kSuccess
                                                            : exitCodeOf(fault);
}

int run(GenerateCommand& command) {
  Folder folder;
  folder.path = command.options.model;
  if (fs::exists(fs::path(folder.path) / "generation.json")) {
    if (ExitCode code = checkCompiled(command); code != kSuccess) return code;
  } else {
    if (int code = checkOptions(command); code != kSuccess) return code;
    if (!canReadTexts(command)) return kUserError;
    if (ExitCode code = compileInto(command, folder); code != kSuccess)
      return code;
    if (!command.hasPrompts()) return kSuccess;
  }
  return runGenerate(folder.path, forwarded(command));
}

}  // namespace

Command addGenerate(CLI::App& app) {
  auto state = std::make_shared<GenerateCommand>();
  GenerationOptions& options = state->options;
  CLI::App* command = app.add_subcommand(
      "generate", "Generate text with a model, from prompts or token ids");
  command
      ->add_option("model", options.model,
                   "A Hugging Face folder, a family's name (gpt2), or a folder "
                   "that -o wrote")
      ->required();
  command->add_option("-o,--output", options.folder,
                      "Keep the compiled model in this folder, for the next "
                      "run; without prompts, compile only");
  command
      ->add_option("--rows", options.rows,
                   "Generate this many texts at a time; default: 1")
      ->check(wholeNumber(1));
  command
      ->add_option("--cache-length", options.length,
                   "Keep keys and values of this many tokens of a text, the "
                   "prompt included; default: 1024, or all positions of the "
                   "model if it has fewer")
      ->check(wholeNumber(1));
  command
      ->add_option_function<std::string>(
          "--cache",
          [&options](const std::string& type) {
            options.is_int8_cache = type == "int8";
          },
          "Keep keys and values as f32, which is the default, or as integers "
          "of 8 bits with a scale for each head and token (int8)")
      ->check(CLI::IsMember({"f32", "int8"}));
  command->add_option("--weight-seed", options.import.seed,
                      "Seed of weights that are in no file");
  command->add_option("--weights", options.import.weights,
                      "Take the weights, by name, from this folder of "
                      "safetensors, e.g. a checkpoint of partita train");
  for (const Forwarded& option : kForwarded) {
    if (option.value)
      command->add_option(option.name, state->values[option.name], option.help)
          ->allow_extra_args(false);
    else
      command->add_flag(option.name, state->switches[option.name], option.help);
  }
  addPlan(state->plan, command);
  state->command = command;
  command->footer(
      "Example:\n  partita generate gpt2/ --prompt \"The sea\" "
      "--max-new-tokens 40 --temperature 0.8 --top-k 50");
  return {command, [state] { return run(*state); }};
}

}  // namespace partita::driver
