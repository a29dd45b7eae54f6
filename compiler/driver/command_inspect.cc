// partita inspect: what is in a model, an artifact, a plan.
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "compiler/driver/command_options.h"
#include "compiler/driver/commands.h"
#include "compiler/driver/inspect.h"
#include "compiler/driver/inspect_dims.h"
#include "compiler/driver/inspect_plan.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

namespace partita::driver {
namespace {

struct InspectCommand {
  ModelArguments model;
  std::vector<std::string> names;
  bool json = false;
};

int inspectArtifactFile(const InspectCommand& command) {
  auto artifact = program::Artifact::Open(command.model.model);
  if (!artifact.ok()) {
    complain(std::string(artifact.status().message()));
    return kUserError;
  }
  show(inspectArtifact(*artifact), command.json, printInspection);
  return kSuccess;
}

int inspectPlanFile(const InspectCommand& command) {
  auto plan = plan::ReadPlan(command.model.model);
  if (!plan.ok()) {
    complain(std::string(plan.status().message()));
    return kUserError;
  }
  show(inspectPlan(*plan), command.json, printPlan);
  return kSuccess;
}

int run(InspectCommand& command) {
  if (!command.model.finish()) return kUsageError;
  const llvm::StringRef path = command.model.model;
  if (path.ends_with(".partita")) return inspectArtifactFile(command);
  if (path.ends_with(".yaml") || path.ends_with(".yml"))
    return inspectPlanFile(command);
  Session session;
  auto module = command.model.import(session);
  if (!module) return kUserError;
  llvm::json::Value facts = inspectModel(*module);
  auto dims = inspectDims(*module, llvm::join(command.names, ";"));
  if (mlir::failed(dims)) return kUserError;
  if (command.json) (*facts.getAsObject())["dimensions"] = toJson(*dims);
  show(facts, command.json, printInspection);
  if (!command.json) printDims(*dims, llvm::outs());
  return kSuccess;
}

}  // namespace

Command addInspect(CLI::App& app) {
  auto state = std::make_shared<InspectCommand>();
  CLI::App* command = app.add_subcommand(
      "inspect", "Say what is in a model, an artifact or a plan");
  state->model.add(command, std::string(kAnyModel) +
                                ", an artifact (.partita), or a plan (.yaml)");
  command
      ->add_option("--name", state->names,
                   "What a dimension of parameters means, where it is not "
                   "found: \"*.mlp.c_fc.weight:1=M\"")
      ->allow_extra_args(false);
  addJson(state->json, command);
  command->footer("Example:\n  partita inspect model.partita --json");
  return {command, [state] { return run(*state); }};
}

}  // namespace partita::driver
