// partita compile: a model as an artifact.
#include <filesystem>
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "compiler/driver/command_options.h"
#include "compiler/driver/commands.h"
#include "compiler/driver/compile.h"
#include "compiler/driver/memory_limit.h"
#include "compiler/driver/model_plan.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include "runtime/base/quantity.h"

namespace partita::driver {
namespace {

std::string plural(int64_t count, const std::string& word) {
  return std::to_string(count) + " " + word + (count == 1 ? "" : "s");
}

void printReport(const CompileReport& report, const std::string& output) {
  llvm::outs()
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
                       base::FormatBytes(report.memory_table.total()),
                       toText(report.memory_table))
      << (report.recomputation.empty()
              ? ""
              : "computed again: " + report.recomputation + "\n")
      << llvm::formatv("wrote {0} ({1}) in {2:F2} s\n", output,
                       base::FormatBytes(report.artifact_bytes),
                       report.seconds);
}

void addTraining(TrainOptions& train, CLI::App* command) {
  CLI::Option* optimizer =
      command->add_option("--train", train.optimizer,
                          "Compile a training step with this optimizer: sgd, "
                          "adam, adamw, lamb or adafactor");
  const auto option = [&](const char* name, auto& value, const char* what) {
    command->add_option(name, value, what)
        ->capture_default_str()
        ->needs(optimizer);
  };
  option("--loss", train.loss, "cross-entropy, mse or none (the model's own)");
  option("--loss-output", train.loss_output,
         "Output that the loss is made of; the first if not given");
  option("--ignore-index", train.ignore_index,
         "Target of positions that do not count");
  option("--label-smoothing", train.label_smoothing,
         "Share of the target spread over all classes");
  option("--trained", train.trained,
         "Parameters to train, as globs: \"h.*;ln_f.*\"");
  option("--weight-decay", train.weight_decay, "Weight decay");
  option("--no-decay", train.no_decay,
         "Parameters without weight decay, as globs: \"*.bias;*ln*\"");
  option("--beta1", train.beta1, "Of Adam's first moment");
  option("--beta2", train.beta2, "Of Adam's second moment");
  option("--epsilon", train.epsilon, "Of Adam");
  option("--momentum", train.momentum, "Of sgd");
  command
      ->add_flag("--nesterov", train.nesterov,
                 "Nesterov's momentum, of sgd with --momentum")
      ->needs(optimizer);
  option("--lr-scale", train.lr_scale,
         "Learning rates of groups, as globs and factors: "
         "\"embed*=0.1;*.head.*=10\"; the last that matches counts");
  option("--clip-norm", train.clip_norm,
         "Largest norm of all gradients together; 0: any");
  option("--loss-scale", train.loss_scale,
         "With --precision f16, what the loss is multiplied with at first: a "
         "power of two");
  command
      ->add_flag("--gradients", train.keep_gradients,
                 "Gradients are outputs too, named grad.PARAMETER")
      ->needs(optimizer);
}

struct CompileCommand {
  ModelArguments model;
  PlanArguments plan;
  CompileOptions options;
  bool json = false;
};

int run(CompileCommand& command) {
  ModelArguments& arguments = command.model;
  CompileOptions& options = command.options;
  if (!arguments.finish()) return kUsageError;
  if (!finish(command.plan, options.plan) ||
      !finish(command.plan, options.precision) ||
      !take(command.plan.FindRecompute(), options.train.recompute) ||
      !take(command.plan.FindMemory(), options.memory))
    return kUserError;
  // Before a large model is read.
  if (std::string wrong = prepareOptions(options); !wrong.empty()) {
    complain(wrong);
    return kUserError;
  }
  Session session;
  arguments.options.training = !options.train.optimizer.empty();
  auto module = arguments.import(session);
  if (!module) return kUserError;
  if (!options.plan) options.plan = planOfModel(*module, arguments.model);
  options.source_folder = arguments.folder();
  if (!module->getName())
    module->setName(std::filesystem::path(arguments.model).stem().string());
  Fault fault = Fault::kUser;
  auto report = compileToFile(*module, options, &fault);
  if (mlir::failed(report)) return exitCodeOf(fault);
  if (command.json)
    llvm::outs() << report->toJson() << "\n";
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
      ->add_option("-o,--output", options.output, "The .partita file to write")
      ->required();
  command->add_option("--cpu", options.cpu,
                      "LLVM CPU name to compile for, or host");
  command->add_flag("--embed-weights", options.embed_weights,
                    "Copy the weights into the artifact");
  command->add_option("--dump-dir", options.dump_dir,
                      "Write the IR after each phase here, numbered");
  addPlan(state->plan, command);
  command->add_option("--memory", state->plan.memory,
                      "Refuse a program that takes more on a device, as in "
                      "\"4 GB\"");
  addTraining(options.train, command);
  addTrainingPlan(state->plan, command);
  addJson(state->json, command);
  command->footer(
      "Example:\n  partita compile model.mlir -o model.partita --dump-dir ir/");
  return {command, [state] { return run(*state); }};
}

}  // namespace partita::driver
