// partita annotate: writes an ONNX file again with a plan's division in it.
#include <memory>

#include "CLI/CLI.hpp"
#include "compiler/driver/annotate.h"
#include "compiler/driver/commands/command_options.h"
#include "compiler/driver/commands/commands.h"

namespace partita::driver {
namespace {

struct AnnotateCommand {
  ModelArguments model;
  PlanArguments plan;
  AnnotateOptions options;
  bool json = false;
};

int run(AnnotateCommand& command) {
  ModelArguments& arguments = command.model;
  AnnotateOptions& options = command.options;
  if (!arguments.finish()) return kUsageError;
  if (ExitCode code = finish(command.plan, options.plan); code != kSuccess)
    return code;
  options.model = arguments.model;
  options.import = arguments.options;
  Session session;
  Fault fault = Fault::kUser;
  auto facts = annotateModel(options, session.context(), &fault);
  if (mlir::failed(facts)) return exitCodeOf(fault);
  show(*facts, command.json, printAnnotation);
  return kSuccess;
}

}  // namespace

Command addAnnotate(CLI::App& app) {
  auto state = std::make_shared<AnnotateCommand>();
  CLI::App* command = app.add_subcommand(
      "annotate",
      "Write an ONNX model again with its division as device annotations");
  state->model.add(command, "An .onnx file");
  addPlan(state->plan, command);
  command
      ->add_option("-o,--output", state->options.output,
                   "The .onnx file to write")
      ->required();
  command->add_option("--configuration", state->options.configuration,
                      "Name of the device configuration to write");
  addJson(state->json, command);
  command->footer(
      "Example:\n  partita annotate model.onnx --mesh data=2 --shard B=data -o "
      "divided.onnx");
  return {command, [state] { return run(*state); }};
}

}  // namespace partita::driver
