// Subcommands and their options; each command is a short function over the
// driver's libraries.
#include "compiler/driver/cli.h"

#include <unistd.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "compiler/driver/annotate.h"
#include "compiler/driver/check_model.h"
#include "compiler/driver/compile.h"
#include "compiler/driver/explain.h"
#include "compiler/driver/import_model.h"
#include "compiler/driver/inspect.h"
#include "compiler/driver/inspect_dims.h"
#include "compiler/driver/model_plan.h"
#include "compiler/driver/plan_arguments.h"
#include "compiler/driver/run_phase.h"
#include "compiler/driver/session.h"
#include "compiler/driver/verify.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include "mlir/IR/AsmState.h"
#include "mlir/Support/FileUtilities.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/quantity.h"

namespace partita::driver {
namespace {

namespace fs = std::filesystem;

// What import, compile and inspect share: how to open a model.
struct ModelArguments {
  std::string model, optional_inputs;
  std::vector<std::string> dims, shapes;
  ImportOptions options;

  void add(CLI::App* command, const std::string& what) {
    command->add_option("model", model, what)->required();
    command
        ->add_option("--dim", dims,
                     "Sizes of symbolic dimensions: batch=8,seq=128")
        ->allow_extra_args(false);
    command
        ->add_option("--input-shape", shapes,
                     "Whole shape of an input of an ONNX model: NAME=1,8")
        ->allow_extra_args(false);
    command
        ->add_option("--optional-inputs", optional_inputs,
                     "Which optional inputs a Hugging Face model takes, or "
                     "none: attention_mask,token_type_ids")
        ->allow_extra_args(false);
    command->add_option("--onnx-configuration", options.onnx_configuration,
                        "Which device configuration of an ONNX model to read "
                        "as a mesh and shardings, or none; without: the only "
                        "one it has");
    command->add_option("--weights", options.weights,
                        "Folder of safetensors to take the weights from, by "
                        "name: a checkpoint of partita train");
    command->add_option("--seed", options.seed,
                        "Seed of weights that no file holds");
  }
  // Reads the texts of options; prints what is wrong.
  bool finish() {
    std::string error;
    for (const std::string& text : dims)
      if (error.empty()) parseDims(text, options.dims, error);
    for (const std::string& text : shapes)
      if (error.empty()) parseInputShape(text, options.input_shapes, error);
    if (!optional_inputs.empty())
      options.optional_inputs = parseNames(optional_inputs);
    if (!error.empty()) llvm::errs() << "error: " << error << "\n";
    return error.empty();
  }
  // Null after diagnostics where the model cannot be read.
  mlir::OwningOpRef<mlir::ModuleOp> import(Session& session) const {
    return importModel(model, options, session.context());
  }
  std::string folder() const {
    return llvm::StringRef(model).ends_with(".mlir")
               ? fs::path(model).parent_path().string()
               : std::string(".");
  }
};

int import(ModelArguments& arguments, const std::string& output, bool json) {
  if (!arguments.finish()) return kUsageError;
  Session session;
  auto module = arguments.import(session);
  if (!module) return kUserError;
  std::string text;
  llvm::raw_string_ostream stream(text);
  module->print(stream, mlir::OpPrintingFlags().enableDebugInfo(true));
  if (absl::Status written = base::WriteFileAtomically(output, text);
      !written.ok()) {
    llvm::errs() << "error: " << std::string(written.message()) << "\n";
    return kUserError;
  }
  llvm::json::Value facts = inspectModel(*module);
  if (json)
    llvm::outs() << facts << "\n";
  else
    printInspection(facts, llvm::outs());
  return kSuccess;
}

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
      << llvm::formatv("memory: {0} arena, {1} derived from parameters\n",
                       base::FormatBytes(report.arena_bytes),
                       base::FormatBytes(report.derived_bytes))
      << llvm::formatv("wrote {0} ({1}) in {2:F2} s\n", output,
                       base::FormatBytes(report.artifact_bytes),
                       report.seconds);
}

void add(TrainOptions& train, CLI::App* command) {
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
  option("--recompute", train.recompute,
         "What the backward pass computes again: none, selective (what is "
         "elementwise, norms), full (whole layers)");
  command
      ->add_flag("--gradients", train.keep_gradients,
                 "Gradients are outputs too, named grad.PARAMETER")
      ->needs(optimizer);
}

void add(PlanArguments& arguments, CLI::App* command) {
  command->add_option("--plan", arguments.plan_path,
                      "Plan file: how to divide the model");
  command->add_option("--mesh", arguments.mesh,
                      "Mesh of devices without a plan file, as in "
                      "data=2,tensor=2");
  command->add_option("--shard", arguments.shard,
                      "What its axes divide, first priority first, as in "
                      "\"B=data;M=tensor,N=tensor,V=tensor;L=tensor\"; "
                      "in some layers only, as in \"H=tensor@stages.0.*\"");
  command->add_option("--precision", arguments.precision,
                      "What parameters and activations are stored as: f32, "
                      "bf16 or f16; training updates f32 copies");
  command->add_option("--name", arguments.names,
                      "A dimension's name where it was found wrong, as in "
                      "\"*.mlp.c_fc.weight:1=M\"");
  command->add_option("--devices", arguments.devices,
                      "Refuse a plan for another number of devices");
}

// Of a plan for training.
void addTrainingPlan(PlanArguments& arguments, CLI::App* command) {
  command
      ->add_option("--zero", arguments.zero,
                   "When training, divide over the axes of B too: 1 or 2 the "
                   "optimizer's states, 3 the parameters as well (ZeRO)")
      ->check(CLI::Range(0, 3));
  command
      ->add_option("--microbatches", arguments.microbatches,
                   "When training, into how many parts the batch is cut, one "
                   "after the other; gradients are added up")
      ->check(CLI::Range(1, 1 << 20));
}

// The plan that the options describe; false after a message.
bool finish(const PlanArguments& arguments, std::optional<plan::Plan>& plan) {
  auto finished = arguments.Finish();
  if (!finished.ok()) {
    llvm::errs() << "error: " << std::string(finished.status().message())
                 << "\n";
    return false;
  }
  plan = *std::move(finished);
  return true;
}

// The same for --precision.
bool finish(const PlanArguments& arguments, plan::Precision& precision) {
  auto found = arguments.FindPrecision();
  if (!found.ok()) {
    llvm::errs() << "error: " << std::string(found.status().message()) << "\n";
    return false;
  }
  precision = found->value_or(plan::Precision::kF32);
  return true;
}

ExitCode exitCodeOf(Fault fault) {
  return fault == Fault::kOurs ? kInternalError : kUserError;
}

int compile(ModelArguments& arguments, const PlanArguments& plan_arguments,
            CompileOptions& options, bool json) {
  if (!arguments.finish()) return kUsageError;
  if (!finish(plan_arguments, options.plan) ||
      !finish(plan_arguments, options.precision))
    return kUserError;
  // Before a large model is read.
  if (std::string wrong = prepareOptions(options); !wrong.empty()) {
    llvm::errs() << "error: " << wrong << "\n";
    return kUserError;
  }
  Session session;
  arguments.options.training = !options.train.optimizer.empty();
  auto module = arguments.import(session);
  if (!module) return kUserError;
  if (!options.plan) options.plan = planOfModel(*module, arguments.model);
  options.source_folder = arguments.folder();
  if (!module->getName())
    module->setName(fs::path(arguments.model).stem().string());
  Fault fault = Fault::kUser;
  auto report = compileToFile(*module, options, &fault);
  if (mlir::failed(report)) return exitCodeOf(fault);
  if (json)
    llvm::outs() << report->toJson() << "\n";
  else
    printReport(*report, options.output);
  return kSuccess;
}

// What explain and verify share: a model and the plan to judge.
int judge(ModelArguments& arguments, const PlanArguments& plan_arguments,
          bool json,
          const std::function<mlir::FailureOr<llvm::json::Value>(
              mlir::ModuleOp, const plan::Plan&, Fault&)>& judgement,
          void (*print)(const llvm::json::Value&, llvm::raw_ostream&)) {
  if (!arguments.finish()) return kUsageError;
  std::optional<plan::Plan> plan;
  if (!finish(plan_arguments, plan)) return kUserError;
  Session session;
  auto module = arguments.import(session);
  if (!module || mlir::failed(checkModel(*module))) return kUserError;
  if (!plan) plan = planOfModel(*module, arguments.model);
  if (!plan) {
    llvm::errs() << "error: expected a plan to judge: --plan FILE, or --mesh "
                    "and --shard\n";
    return kUsageError;
  }
  Fault fault = Fault::kUser;
  auto result = judgement(*module, *plan, fault);
  if (mlir::failed(result)) return exitCodeOf(fault);
  if (json)
    llvm::outs() << *result << "\n";
  else
    print(*result, llvm::outs());
  const llvm::json::Object* facts = result->getAsObject();
  return facts->getBoolean("equal").value_or(true) ? kSuccess : kUserError;
}

int annotate(ModelArguments& arguments, const PlanArguments& plan_arguments,
             AnnotateOptions& options, bool json) {
  if (!arguments.finish()) return kUsageError;
  if (!finish(plan_arguments, options.plan)) return kUserError;
  options.model = arguments.model;
  options.import = arguments.options;
  Session session;
  Fault fault = Fault::kUser;
  auto facts = annotateModel(options, session.context(), &fault);
  if (mlir::failed(facts)) return exitCodeOf(fault);
  if (json)
    llvm::outs() << *facts << "\n";
  else
    printAnnotation(*facts, llvm::outs());
  return kSuccess;
}

int inspect(ModelArguments& arguments, const std::vector<std::string>& names,
            bool json) {
  if (!arguments.finish()) return kUsageError;
  llvm::json::Value facts = nullptr;
  sharding::NamingReport dims;
  if (llvm::StringRef(arguments.model).ends_with(".partita")) {
    auto artifact = program::Artifact::Open(arguments.model);
    if (!artifact.ok()) {
      llvm::errs() << "error: " << std::string(artifact.status().message())
                   << "\n";
      return kUserError;
    }
    facts = inspectArtifact(*artifact);
  } else {
    Session session;
    auto module = arguments.import(session);
    if (!module) return kUserError;
    facts = inspectModel(*module);
    auto found = inspectDims(*module, llvm::join(names, ";"));
    if (mlir::failed(found)) return kUserError;
    dims = std::move(*found);
    (*facts.getAsObject())["dimensions"] = toJson(dims);
  }
  if (json) {
    llvm::outs() << facts << "\n";
  } else {
    facts.getAsObject()->erase("dimensions");
    printInspection(facts, llvm::outs());
    printDims(dims, llvm::outs());
  }
  return kSuccess;
}

// Becomes partita-run, which lies beside this program (installed) or in
// runtime/tools (built).
int run(const std::vector<std::string>& arguments,
        const char* command = nullptr) {
  std::error_code error;
  fs::path self = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const fs::path& candidate :
       {self / "partita-run", self / "../../runtime/tools/partita-run"}) {
    if (!fs::exists(candidate, error)) continue;
    std::vector<char*> argv = {const_cast<char*>("partita-run")};
    if (command != nullptr) argv.push_back(const_cast<char*>(command));
    for (const std::string& argument : arguments)
      argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    execv(candidate.c_str(), argv.data());
  }
  llvm::errs() << "error: expected the program partita-run beside "
               << self.string() << "/partita, found none that can be started\n";
  return kInternalError;
}

// Where the command line has a command or an option that does not exist, says
// so: parsing may complain of something missing first.
bool explainUnknown(const CLI::App& app) {
  auto nearest = [](llvm::StringRef found, llvm::ArrayRef<std::string> known) {
    constexpr unsigned kTypo = 2;
    for (const std::string& name : known)
      if (found.edit_distance(name) <= kTypo)
        return "; did you mean '" + name + "'?";
    return std::string();
  };
  std::vector<std::string> commands;
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    commands.push_back(command->get_name());
    std::vector<std::string> options;
    for (const CLI::Option* option : command->get_options())
      for (const std::string& name : option->get_lnames())
        options.push_back("--" + name);
    if (!command->parsed()) continue;
    for (const std::string& word : command->remaining()) {
      if (word.size() < 2 || word[0] != '-') continue;
      llvm::errs() << "error: partita " << command->get_name()
                   << " has no option '" << word << "'"
                   << nearest(llvm::StringRef(word).split('=').first, options)
                   << "\n";
      return true;
    }
  }
  for (const std::string& word : app.remaining()) {
    llvm::errs() << "error: expected a command, one of "
                 << llvm::join(commands, ", ") << "; found '" << word << "'"
                 << nearest(word, commands) << "\n";
    return true;
  }
  return false;
}

int runCommand(int argc, char** argv) {
  CLI::App app(
      "Partita: one model graph, divided over many devices, compiled and run.",
      "partita");
  app.require_subcommand(1);
  app.footer(
      "Example:\n  partita compile gpt2/ --dim batch=1,seq=128 -o gpt2.partita "
      "&& partita run gpt2.partita --random-inputs 1");
  bool json = false;

  ModelArguments import_model, compile_model, inspect_model, explain_model,
      verify_model, annotate_model;
  PlanArguments compile_plan, explain_plan, verify_plan, annotate_plan;
  std::string import_output;
  const std::string any =
      "An .onnx or .mlir file, a Hugging Face folder, or a family's name "
      "(coatnet-0)";
  CLI::App* import_command =
      app.add_subcommand("import", "Read a model and write it as nn IR");
  import_model.add(import_command, any);
  import_command
      ->add_option("-o,--output", import_output, "The .mlir file to write")
      ->required();
  import_command->add_flag("--training", import_model.options.training,
                           "For training: batch norms of a Hugging Face model "
                           "take the statistics of the batch");
  import_command->footer(
      "Example:\n  partita import model.onnx --dim batch=8,seq=128 -o "
      "model.mlir");

  CompileOptions compile_options;
  CLI::App* compile_command =
      app.add_subcommand("compile", "Compile a model to an artifact");
  compile_model.add(compile_command, any);
  compile_command
      ->add_option("-o,--output", compile_options.output,
                   "The .partita file to write")
      ->required();
  compile_command->add_option("--cpu", compile_options.cpu,
                              "LLVM CPU name to compile for, or host");
  compile_command->add_flag("--embed-weights", compile_options.embed_weights,
                            "Copy the weights into the artifact");
  compile_command->add_option("--dump-dir", compile_options.dump_dir,
                              "Write the IR after each phase here, numbered");
  add(compile_plan, compile_command);
  addTrainingPlan(compile_plan, compile_command);
  add(compile_options.train, compile_command);
  compile_command->footer(
      "Example:\n  partita compile model.mlir -o model.partita --dump-dir ir/");

  CLI::App* explain_command =
      app.add_subcommand("explain", "Say what a divided model sends, and why");
  explain_model.add(explain_command, any);
  add(explain_plan, explain_command);
  explain_command->footer(
      "Example:\n  partita explain gpt2/ --dim batch=8,seq=128 --mesh tensor=2 "
      "--shard \"M=tensor,N=tensor,V=tensor;L=tensor\"");

  CLI::App* verify_command = app.add_subcommand(
      "verify", "Compare the divided model with the undivided one, op by op");
  verify_model.add(verify_command, any);
  add(verify_plan, verify_command);
  VerifyOptions verify_options;
  verify_command->add_flag("--full", verify_options.full,
                           "Run all layers of a large model, not two of those "
                           "that repeat");
  verify_command->footer(
      "Sizes that are not given are small: batch 3, seq 8.\n"
      "Example:\n  partita verify gpt2/ --mesh data=2 --shard B=data");

  AnnotateOptions annotate_options;
  CLI::App* annotate_command = app.add_subcommand(
      "annotate",
      "Write an ONNX model again with its division as device annotations");
  annotate_model.add(annotate_command, "An .onnx file");
  add(annotate_plan, annotate_command);
  annotate_command
      ->add_option("-o,--output", annotate_options.output,
                   "The .onnx file to write")
      ->required();
  annotate_command->add_option("--configuration",
                               annotate_options.configuration,
                               "Name of the device configuration to write");
  annotate_command->footer(
      "Example:\n  partita annotate model.onnx --mesh data=2 --shard B=data -o "
      "divided.onnx");

  CLI::App* inspect_command =
      app.add_subcommand("inspect", "Say what is in a model or an artifact");
  inspect_model.add(inspect_command, any + ", or an artifact (.partita)");
  std::vector<std::string> inspect_names;
  inspect_command
      ->add_option("--name", inspect_names,
                   "What a dimension of parameters means, where it is not "
                   "found: \"*.mlp.c_fc.weight:1=M\"")
      ->allow_extra_args(false);
  inspect_command->footer("Example:\n  partita inspect model.partita --json");

  CLI::App* run_command =
      app.add_subcommand("run", "Run an artifact (see partita-run --help)")
          ->prefix_command();
  CLI::App* train_command =
      app.add_subcommand("train",
                         "Train a model compiled with --train (see partita-run "
                         "train --help)")
          ->prefix_command();
  for (CLI::App* command : {run_command, train_command})
    command->set_help_flag();
  for (CLI::App* command : {import_command, compile_command, inspect_command,
                            explain_command, verify_command, annotate_command})
    command->add_flag("--json", json,
                      "Print one JSON object instead of a table");

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0 && explainUnknown(app)) return kUsageError;
    return app.exit(error) == 0 ? kSuccess : kUsageError;
  }
  if (*import_command) return import(import_model, import_output, json);
  if (*compile_command)
    return compile(compile_model, compile_plan, compile_options, json);
  if (*explain_command)
    return judge(
        explain_model, explain_plan, json,
        [](mlir::ModuleOp module, const plan::Plan& plan, Fault& fault) {
          return explainPlan(module, plan, &fault);
        },
        printExplanation);
  if (*verify_command) {
    verify_model.options.small_dims = true;
    verify_options.source_folder = verify_model.folder();
    if (isatty(STDERR_FILENO)) verify_options.progress = &llvm::errs();
    return judge(
        verify_model, verify_plan, json,
        [&](mlir::ModuleOp module, const plan::Plan& plan, Fault& fault) {
          return verifyPlan(module, plan, verify_options, &fault);
        },
        printVerification);
  }
  if (*annotate_command)
    return annotate(annotate_model, annotate_plan, annotate_options, json);
  if (*inspect_command) return inspect(inspect_model, inspect_names, json);
  if (*train_command) return run(train_command->remaining(), "train");
  return run(run_command->remaining());
}

}  // namespace

int runPartita(int argc, char** argv) {
  return finishOutput(runCommand(argc, argv));
}

}  // namespace partita::driver
