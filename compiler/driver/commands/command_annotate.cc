// partita annotate: writes an ONNX file again with a plan's division in it, or
// the plan as JAX's PartitionSpecs.
#include <memory>

#include "CLI/CLI.hpp"
#include "compiler/driver/annotate.h"
#include "compiler/driver/commands/command_options.h"
#include "compiler/driver/commands/commands.h"
#include "compiler/driver/partition_specs.h"

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
  const bool writes_specs = isPartitionSpecs(options.output);
  auto facts = writes_specs
                   ? writePartitionSpecs(options, session.context(), fault)
                   : annotateModel(options, session.context(), &fault);
  if (mlir::failed(facts)) return exitCodeOf(fault);
  show(*facts, command.json,
       writes_specs ? printPartitionSpecs : printAnnotation);
  return kSuccess;
}

}  // namespace

Command addAnnotate(CLI::App& app) {
  auto state = std::make_shared<AnnotateCommand>();
  CLI::App* command = app.add_subcommand(
      "annotate",
      "Write an ONNX model again with its division as device annotations, or a "
      "plan as JAX's PartitionSpecs");
  state->model.add(command, "An .onnx file, or any model for PartitionSpecs");
  addPlan(state->plan, command);
  command
      ->add_option("-o,--output", state->options.output,
                   "The file to write: .onnx, or .py or .json for "
                   "PartitionSpecs")
      ->required();
  command->add_option("--configuration", state->options.configuration,
                      "Name of the device configuration to write");
  addJson(state->json, command);
  command->footer(
      "Examples:\n  partita annotate model.onnx --mesh data=2 --shard B=data "
      "-o divided.onnx\n  partita annotate step.mlirbc --plan plan.yaml -o "
      "specs.py");
  return {command, [state] { return run(*state); }};
}

}  // namespace partita::driver
