// partita lora: adapters to and from PEFT's folders.
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "compiler/driver/commands/command_options.h"
#include "compiler/driver/commands/commands.h"
#include "frontends/lora/peft_folder.h"
#include "llvm/Support/raw_ostream.h"
#include "runtime/base/quantity.h"

namespace partita::driver {
namespace {

struct LoraCommand {
  std::string input, adapter, output;
  double alpha = 0;
  bool by_root = false, json = false, saves = false;
};

void print(const llvm::json::Value& value, llvm::raw_ostream& stream) {
  const llvm::json::Object& facts = *value.getAsObject();
  stream << *facts.getString("folder") << ": adapters of "
         << *facts.getInteger("modules") << " modules, "
         << base::FormatBytes(*facts.getInteger("bytes")) << "\n";
}

int run(const LoraCommand& command) {
  const absl::StatusOr<lora::Saved> saved =
      command.saves
          ? lora::SaveAdapters(command.input, command.alpha, command.by_root,
                               command.output)
          : lora::MergeAdapters(command.input, command.adapter, command.output);
  if (!saved.ok()) {
    complain(std::string(saved.status().message()));
    return kUserError;
  }
  show(llvm::json::Object{{"folder", command.output},
                          {"modules", saved->modules},
                          {"bytes", saved->bytes}},
       command.json, print);
  return kSuccess;
}

}  // namespace

Command addLora(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "lora", "Save trained adapters for PEFT, or merge them into a model");
  command->require_subcommand(1);
  auto state = std::make_shared<LoraCommand>();
  CLI::App* save = command->add_subcommand(
      "save", "Write the adapters of a checkpoint as a PEFT folder");
  save->add_option("checkpoint", state->input,
                   "A checkpoint of a model compiled with --lora")
      ->required();
  save->add_option("--alpha", state->alpha, "The alpha of --lora")->required();
  save->add_flag("--rslora", state->by_root, "The scale is alpha / sqrt(rank)");
  save->footer(
      "Example:\n  partita lora save run/step-00000100 --alpha 16 -o adapter");
  CLI::App* merge = command->add_subcommand(
      "merge", "Add a PEFT folder's adapters to a model's weights");
  merge->add_option("model", state->input, "A Hugging Face folder")->required();
  merge->add_option("--adapter", state->adapter, "A PEFT folder")->required();
  merge->footer(
      "Example:\n  partita lora merge llama/ --adapter adapter -o merged");
  for (CLI::App* each : {save, merge}) {
    each->add_option("-o,--output", state->output, "The new folder")
        ->required();
    addJson(state->json, each);
  }
  command->footer(
      "Example:\n  partita compile llama/ --lora \"rank=8; "
      "targets=q_proj,v_proj\" --train adamw -o step.partita");
  return {command, [state, save] {
            state->saves = save->parsed();
            return run(*state);
          }};
}

}  // namespace partita::driver
