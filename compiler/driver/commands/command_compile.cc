// partita compile: compiles a model to an artifact.
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "compiler/driver/commands/command_options.h"
#include "compiler/driver/commands/commands.h"
#include "compiler/driver/compile.h"
#include "compiler/driver/console.h"
#include "compiler/driver/memory_limit.h"
#include "compiler/driver/model_plan.h"
#include "compiler/driver/zero_one.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include "runtime/base/quantity.h"

namespace partita::driver {
namespace {

std::string plural(int64_t count, const std::string& word) {
  return std::to_string(count) + " " + word + (count == 1 ? "" : "s");
}

void printReport(const CompileReport& report, const std::string& output) {
  results()
      << llvm::formatv("{0}: {1}, {2} ({3} numbers)\n", report.model,
                       plural(report.operations, "operation"),
                       plural(report.parameters, "parameter"),
                       base::FormatCount(report.parameter_elements))
      << llvm::formatv(
             "layers: {0}, {1}; kernels: {2}, launched {3}; library calls: "
             "{4}, {5}\n",
             plural(report.layer_kinds, "kind"),
             plural(report.layer_calls, "call"), report.kernels,
             plural(report.launches, "time"), plural(report.gemms, "product"),
             plural(report.convolutions, "convolution"))
      << llvm::formatv("memory{0}: {1}: {2}\n",
                       report.devices > 1 ? " of a device" : "",
                       base::FormatBytes(report.memoryTable().total()),
                       toText(report.memoryTable()))
      << (report.recomputation.empty()
              ? ""
              : "computed again: " + report.recomputation + "\n")
      << llvm::formatv("wrote {0} ({1}) in {2:F2} s\n", output,
                       base::FormatBytes(report.artifact_bytes),
                       report.seconds);
}

// The name of the model: a file's name without its extension, or the full name
// of a folder.
std::string nameOf(const std::string& model) {
  std::filesystem::path path =
      std::filesystem::absolute(model).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  return (std::filesystem::is_directory(path) ? path.filename() : path.stem())
      .string();
}

struct CompileCommand {
  ModelArguments model;
  PlanArguments plan;
  CompileOptions options;
  std::vector<std::string> cubins;  // {"none"}: no machine code
  bool json = false;
};

int run(CompileCommand& command) {
  ModelArguments& arguments = command.model;
  CompileOptions& options = command.options;
  if (!arguments.finish() ||
      !keepsInputFiles({{arguments.model, arguments.options.weights,
                         command.plan.plan_path, command.plan.schedule},
                        {{"-o", options.output}}}))
    return kUsageError;
  if (!finish(command.plan, options.precision) ||
      !take(command.plan.FindRecompute(), options.train.recompute) ||
      !take(command.plan.FindMemory(), options.memory))
    return kUsageError;
  if (ExitCode code = finish(command.plan, options.plan); code != kSuccess)
    return code;
  if (command.cubins == std::vector<std::string>{"none"})
    options.cubins.emplace();
  else if (!command.cubins.empty())
    options.cubins = command.cubins;
  // Check the target before a large model is read.
  if (std::string wrong = checkMachine(options); !wrong.empty()) {
    complain(wrong);
    return kUsageError;
  }
  if (std::string wrong = prepareOptions(options); !wrong.empty()) {
    complain(wrong);
    return kUserError;
  }
  Session session;
  arguments.prepareFor(options.train);
  auto module = arguments.import(session);
  if (!module) return kUserError;
  if (!options.plan) options.plan = planOfModel(*module, arguments.model);
  options.source_folder = arguments.folder();
  if (!module->getName()) module->setName(nameOf(arguments.model));
  Fault fault = Fault::kUser;
  auto report = isZeroOne(options.train)
                    ? compileZeroOne(*module, options, fault)
                    : compileToFile(*module, options, &fault);
  if (mlir::failed(report)) return exitCodeOf(fault);
  if (isZeroOne(options.train))
    messages() << "note: counts are of the exchange step, memory is of the "
                  "three kinds of steps together\n";
  if (command.json)
    results() << report->toJson() << "\n";
  else
    printReport(*report, options.output);
  return kSuccess;
}

}  // namespace

Command addCompile(CLI::App& app) {
  auto state = std::make_shared<CompileCommand>();
  CLI::App* command =
      app.add_subcommand("compile", "Compile a model to an artifact");
  state->model.add(command, kAnyModel);
  CompileOptions& options = state->options;
  command
      ->add_option("-o,--output", options.output,
                   "The .partita file to write; with --train 0/1-adam a folder")
      ->required();
  command->add_option(
      "--target", options.target,
      "Compile for cpu (the default) or a GPU, e.g. cuda:sm_90");
  command
      ->add_option("--cubins", state->cubins,
                   "Embed machine code for these GPUs beside the PTX, e.g. "
                   "sm_80,sm_90; none: PTX only. Default: the target's, if "
                   "NVIDIA's assembler ptxas is installed")
      ->delimiter(',');
  command->add_option("--cpu", options.cpu,
                      "Compile for this LLVM CPU name; default: host");
  command->add_flag("--embed-weights", options.embed_weights,
                    "Copy the weights into the artifact");
  command->add_option("--dump-dir", options.dump_dir,
                      "Write the IR after each phase here, numbered");
  command->add_flag("!--no-overlap", options.overlap,
                    "Do not run collectives beside other work");
  addPlan(state->plan, command);
  command->add_option("--memory", state->plan.memory,
                      "Refuse programs that need more memory per device than "
                      "this, e.g. \"4 GB\"");
  addTraining(options.train, command);
  addTrainingPlan(state->plan, command);
  addJson(state->json, command);
  command->footer(
      "Example:\n  partita compile model.mlir -o model.partita --dump-dir ir/");
  return {command, [state] { return run(*state); }};
}

}  // namespace partita::driver
