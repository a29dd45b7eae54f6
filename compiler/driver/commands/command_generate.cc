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

// Compiles the model into `folder`, unless it is compiled.
ExitCode compileInto(GenerateCommand& command, Folder& folder) {
  GenerationOptions& options = command.options;
  if (fs::exists(fs::path(options.model) / "generation.json")) {
    folder.path = options.model;
    return kSuccess;
  }
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
  if (ExitCode code = compileInto(command, folder); code != kSuccess)
    return code;
  std::vector<std::string> words = {"partita-run", "generate", folder.path};
  for (const auto& [name, texts] : command.values)
    for (const std::string& text : texts) {
      words.push_back(name);
      words.push_back(text);
    }
  for (const auto& [name, given] : command.switches)
    if (given) words.push_back(name);
  const bool asks = command.values.at("--prompt").size() +
                        command.values.at("--prompts").size() +
                        command.values.at("--ids").size() >
                    0;
  if (!asks && !command.options.folder.empty() && !folder.is_temporary)
    return kSuccess;
  std::string runner;
  if (!take(findRunner(), runner)) return kInternalError;
  const llvm::SmallVector<llvm::StringRef> arguments(words.begin(),
                                                     words.end());
  std::string message;
  const int code = llvm::sys::ExecuteAndWait(runner, arguments, std::nullopt,
                                             {}, 0, 0, &message);
  if (code >= 0) return code;
  complain(runner + ": " + message);
  return kInternalError;
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
  command->footer(
      "Example:\n  partita generate gpt2/ --prompt \"The sea\" "
      "--max-new-tokens 40 --temperature 0.8 --top-k 50");
  return {command, [state] { return run(*state); }};
}

}  // namespace partita::driver
