// partita import: writes any model as nn IR.
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "compiler/driver/commands/command_options.h"
#include "compiler/driver/commands/commands.h"
#include "compiler/driver/inspect/inspect.h"
#include "llvm/Support/raw_ostream.h"
#include "runtime/base/atomic_file.h"

namespace partita::driver {
namespace {

struct ImportCommand {
  ModelArguments model;
  std::string output;
  bool json = false;
};

int run(ImportCommand& command) {
  if (!command.model.finish()) return kUsageError;
  Session session;
  auto module = command.model.import(session);
  if (!module) return kUserError;
  std::string text;
  llvm::raw_string_ostream stream(text);
  module->print(stream, mlir::OpPrintingFlags().enableDebugInfo(true));
  if (absl::Status written = base::WriteFileAtomically(command.output, text);
      !written.ok()) {
    complain(std::string(written.message()));
    return kUserError;
  }
  show(inspectModel(*module), command.json, printInspection);
  return kSuccess;
}

}  // namespace

Command addImport(CLI::App& app) {
  auto state = std::make_shared<ImportCommand>();
  CLI::App* command =
      app.add_subcommand("import", "Read a model and write it as nn IR");
  state->model.add(command, kAnyModel);
  command->add_option("-o,--output", state->output, "The .mlir file to write")
      ->required();
  command->add_flag("--training", state->model.options.training,
                    "Import for training: batch norms of a Hugging Face model "
                    "use the statistics of the batch");
  addJson(state->json, command);
  command->footer(
      "Example:\n  partita import model.onnx --dim batch=8,seq=128 -o "
      "model.mlir");
  return {command, [state] { return run(*state); }};
}

}  // namespace partita::driver
