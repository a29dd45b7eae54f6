// partita prune: sets small weights of a model to zero.
#include <cstdlib>
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "compiler/driver/commands/command_options.h"
#include "compiler/driver/commands/commands.h"
#include "compiler/driver/console.h"
#include "frontends/pruning/pruning.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include "runtime/base/quantity.h"

namespace partita::driver {
namespace {

struct PruneCommand {
  ModelArguments model;
  pruning::Options options;
  std::string pattern, output;
  bool json = false;
};

llvm::json::Value factsOf(const pruning::Report& report,
                          const std::string& output) {
  llvm::json::Array pruned, left_alone;
  int64_t elements = 0, zeros = 0;
  for (const pruning::PrunedTensor& tensor : report.pruned) {
    pruned.push_back(
        llvm::json::Object{{"name", tensor.name},
                           {"shape", llvm::json::Array(tensor.shape)},
                           {"elements", tensor.elements},
                           {"zeros", tensor.zeros},
                           {"kept_magnitude", tensor.kept_magnitude},
                           {"permuted", tensor.is_permuted}});
    elements += tensor.elements;
    zeros += tensor.zeros;
  }
  for (const auto& [name, reason] : report.left_alone)
    left_alone.push_back(
        llvm::json::Object{{"name", name}, {"reason", reason}});
  return llvm::json::Object{{"pruned", std::move(pruned)},
                            {"left_alone", std::move(left_alone)},
                            {"elements", elements},
                            {"zeros", zeros},
                            {"folder", output},
                            {"bytes", report.bytes}};
}

void printFacts(const llvm::json::Value& value, llvm::raw_ostream& out) {
  const llvm::json::Object& facts = *value.getAsObject();
  out << llvm::formatv("{0,-44} {1,12} {2,10}  {3}\n", "weight", "elements",
                       "zeros", "magnitude kept");
  const auto share = [](double part, double whole) {
    return llvm::formatv("{0:F1} %", 100 * part / whole).str();
  };
  for (const llvm::json::Value& each : *facts.getArray("pruned")) {
    const llvm::json::Object& tensor = *each.getAsObject();
    const auto elements = static_cast<double>(*tensor.getInteger("elements"));
    out << llvm::formatv(
        "{0,-44} {1,12} {2,10}  {3}{4}\n", *tensor.getString("name"),
        *tensor.getInteger("elements"),
        share(static_cast<double>(*tensor.getInteger("zeros")), elements),
        share(*tensor.getNumber("kept_magnitude"), 1),
        *tensor.getBoolean("permuted") ? ", reordered" : "");
  }
  for (const llvm::json::Value& each : *facts.getArray("left_alone"))
    out << "left alone: " << *each.getAsObject()->getString("name") << " ("
        << *each.getAsObject()->getString("reason") << ")\n";
  out << "wrote " << *facts.getString("folder") << " ("
      << base::FormatBytes(*facts.getInteger("bytes")) << "): "
      << share(static_cast<double>(*facts.getInteger("zeros")),
               static_cast<double>(*facts.getInteger("elements")))
      << " of these weights are zero; --keep-zeros keeps them so in training\n";
}

int run(PruneCommand& command) {
  pruning::Options& options = command.options;
  if (!command.model.finish()) return kUsageError;
  if (command.pattern.empty() == (options.sparsity == 0)) {
    complain("expected --sparsity SHARE or --pattern KEPT:OF, found " +
             std::string(command.pattern.empty() ? "neither" : "both"));
    return kUsageError;
  }
  if (!command.pattern.empty()) {
    if (absl::Status parsed = pruning::parsePattern(command.pattern, options);
        !parsed.ok()) {
      complain(std::string(parsed.message()));
      return kUsageError;
    }
  }
  if (absl::Status checked = pruning::checkLeftAlone(options); !checked.ok()) {
    complain(std::string(checked.message()));
    return kUsageError;
  }
  Session session;
  auto module = command.model.import(session);
  if (!module) return kUserError;
  const std::string& model = command.model.model;
  const auto report = pruning::pruneModel(
      *module, options, command.model.folder(),
      llvm::sys::fs::is_directory(model) ? model : std::string(),
      command.output);
  if (!report.ok()) {
    complain(std::string(report.status().message()));
    return kUserError;
  }
  show(factsOf(*report, command.output), command.json, printFacts);
  return kSuccess;
}

}  // namespace

Command addPrune(CLI::App& app) {
  auto state = std::make_shared<PruneCommand>();
  CLI::App* command = app.add_subcommand(
      "prune", "Set the smallest weights of products to zero");
  state->model.add(command, kAnyModel);
  // A teacher needs --train, which this command lacks.
  for (const char* name : {"--teacher", "--teacher-weights", "--distill"})
    command->get_option(name)->group("");
  CLI::Option* sparsity =
      command
          ->add_option("--sparsity", state->options.sparsity,
                       "The share of zeros in each weight, e.g. 0.5")
          ->check(shareAboveZero());
  command
      ->add_flag("--global", state->options.global,
                 "--sparsity is the share of all weights together")
      ->needs(sparsity);
  CLI::Option* pattern = command->add_option(
      "--pattern", state->pattern,
      "Keep the largest KEPT of each OF consecutive terms of a sum: 2:4");
  command
      ->add_flag("--permute", state->options.permute,
                 "Reorder the hidden units of MLPs first, so that more "
                 "magnitude remains; the results stay the same")
      ->needs(pattern);
  command->add_option("--keep", state->options.left_alone,
                      "Leave these weights alone, as globs: \"lm_head.*\"; "
                      "!GLOB prunes some of them");
  command
      ->add_option("-o,--output", state->output,
                   "The new folder, a model or for --weights")
      ->required();
  addJson(state->json, command);
  command->footer(
      "Examples:\n  partita prune llama/ --pattern 2:4 --permute -o pruned\n"
      "  partita compile pruned --train adamw --keep-zeros \"*\" -o "
      "step.partita");
  return {command, [state] { return run(*state); }};
}

}  // namespace partita::driver
