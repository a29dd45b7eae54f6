// Declares the options that several commands share, each once.
#include "compiler/driver/commands/command_options.h"

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <system_error>

#include "CLI/CLI.hpp"
#include "compiler/driver/console.h"
#include "compiler/quantize/fake_quantize.h"
#include "compiler/quantize/quantize.h"
#include "frontends/distillation/distillation.h"
#include "frontends/lora/lora.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"
#include "runtime/base/teacher_name.h"

namespace partita::driver {

void ModelArguments::add(CLI::App* command, const std::string& what) {
  this->command = command;
  command->add_option("model", model, what)->required();
  command
      ->add_option("--dim", dims,
                   "Set sizes of symbolic dimensions: batch=8,seq=128")
      ->allow_extra_args(false);
  command
      ->add_option(
          "--input-shape", shapes,
          "Set the whole shape of an ONNX or .pt2 model's input: NAME=1,8")
      ->allow_extra_args(false);
  command
      ->add_option("--optional-inputs", optional_inputs,
                   "Choose the optional inputs of a Hugging Face model, or "
                   "none: attention_mask,token_type_ids")
      ->allow_extra_args(false);
  command->add_option(
      "--onnx-configuration", options.onnx_configuration,
      "Read this device configuration of an ONNX model as a mesh and "
      "shardings, or none; default: the only one it has");
  command->add_flag("--ignore-shardings", options.ignore_shardings,
                    "Leave out the meshes and shardings of a program of JAX");
  command->add_option("--weights", options.weights,
                      "Take the weights, by name, from this folder of "
                      "safetensors, e.g. a checkpoint of partita train");
  command->add_option(
      "--lora", options.lora,
      "Add low-rank adapters, which are all that --train trains: \"rank=8; "
      "alpha=16; targets=*.q_proj,*.v_proj\", or a PEFT folder");
  command
      ->add_option(
          "--fake-quantize", options.fake_quantize,
          "Round the weights of products and their inputs to 8 bits, in "
          "floats. Train so, then give partita quantize the same option, "
          "without ranges=. Default: \"bits=8; averaging=0.01; "
          "ranges=moving; inputs=y; embeddings=n; convolutions=n\". Set "
          "averaging to a step's "
          "share in the ranges of inputs; with --train, set \"ranges=fixed\" "
          "to keep the ranges of --weights; set \"inputs=n\" to round weights "
          "only, \"embeddings=y\" to round tables too, \"convolutions=y\" to "
          "round convolutions, \"keep=*.head,*.fc1\" "
          "to leave weights as they are")
      ->check([](const std::string& text) {
        return std::string(quantize::parseFakeOptions(text).status().message());
      });
  command->add_option("--teacher", options.teacher,
                      "With --train: also learn the outputs of this model, "
                      "which is not trained; read like the model");
  command->add_option("--teacher-weights", options.teacher_weights,
                      "Take the teacher's weights, by name, from this folder "
                      "of safetensors");
  command->add_option(
      "--distill", options.distill,
      "Weights of the losses with --teacher, and what to compare; default: "
      "\"temperature=2; kl=1; cross_entropy=1\". More: "
      "\"hidden=STUDENT:TEACHER\", layers or outputs, \"hidden_loss=mse\" or "
      "cosine, \"hidden_weight=1\", \"logits=STUDENT:TEACHER\", "
      "\"teacher_precision=bf16\"");
  command->add_option("--seed", options.seed,
                      "Seed of weights that are in no file");
  command
      ->add_option("--dropout", options.dropout,
                   "Set the probability of all dropouts when training a "
                   "Hugging Face model, instead of its config's; 0: none")
      ->check([](const std::string& text) {
        char* end = nullptr;
        const double value = std::strtod(text.c_str(), &end);
        return *end == '\0' && end != text.c_str() && value >= 0 && value < 1
                   ? std::string()
                   : "expected a probability from 0 to below 1, found " + text;
      });
}

std::string ModelArguments::given() const {
  for (const char* name :
       {"--dim", "--input-shape", "--optional-inputs", "--onnx-configuration",
        "--ignore-shardings", "--weights", "--lora", "--fake-quantize",
        "--teacher", "--teacher-weights", "--distill", "--seed", "--dropout"})
    if (command->get_option(name)->count() > 0) return name;
  return "";
}

bool ModelArguments::finish() {
  // A folder of partita quantize holds a module and its weights.
  const std::filesystem::path file =
      std::filesystem::path(model) / quantize::kModelFile;
  std::error_code missing;
  if (std::filesystem::is_regular_file(file, missing)) model = file.string();
  std::string error;
  for (const std::string& text : dims)
    if (error.empty()) parseDims(text, options.dims, error);
  for (const std::string& text : shapes)
    if (error.empty()) parseInputShape(text, options.input_shapes, error);
  if (!optional_inputs.empty())
    options.optional_inputs = parseNames(optional_inputs);
  const CLI::Option* train = command->get_option_no_throw("--train");
  const bool trains = train != nullptr && train->count() > 0;
  if (!options.teacher.empty() && !trains)
    error = "expected --train with --teacher " + options.teacher +
            ", as a teacher is for training only, found none";
  for (const char* name : {"--distill", "--teacher-weights"})
    if (command->get_option(name)->count() > 0 && options.teacher.empty())
      error =
          std::string("expected --teacher MODEL with ") + name + ", found none";
  if (error.empty() && !options.distill.empty())
    error = std::string(
        distillation::ParseOptions(options.distill).status().message());
  if (!error.empty()) complain(error);
  return error.empty();
}

void ModelArguments::prepareFor(TrainOptions& train) {
  options.training = !train.optimizer.empty();
  if (!options.lora.empty() && command->get_option("--trained")->count() == 0)
    train.trained = lora::kAdapters;
  if (options.teacher.empty()) return;
  options.logits_output = train.loss_output;
  train.trained += std::string(";!") + base::kTeacherPrefix + "*";
}

mlir::OwningOpRef<mlir::ModuleOp> ModelArguments::import(
    Session& session) const {
  return importModel(model, options, session.context());
}

std::string ModelArguments::folder() const { return folderOf(model); }

void addPlan(PlanArguments& arguments, CLI::App* command) {
  command->add_option("--plan", arguments.plan_path,
                      "Divide the model by this plan file");
  command->add_option("--mesh", arguments.mesh,
                      "Mesh of devices, without a plan file: data=2,tensor=2");
  command->add_option(
      "--shard", arguments.shard,
      "Divide dimensions over axes of the mesh, highest priority first, e.g. "
      "\"B=data;M=tensor,N=tensor,V=tensor;L=tensor\"; in some layers only, "
      "e.g. \"H=tensor@stages.0.*\", or in some stages of a pipeline, e.g. "
      "\"B=data@stage(0)\"");
  command->add_option("--precision", arguments.precision,
                      "Store parameters and activations as f32, bf16 or f16; "
                      "f8: as bf16, and round factors of linear layers to 8 "
                      "bits; training updates f32 copies");
  command->add_option("--attention", arguments.attention,
                      "How attention is computed where L divides the "
                      "sequence: gather, ulysses (all-to-all from rows to "
                      "heads) or ring; default: gather or ulysses, whichever "
                      "moves fewer bytes");
  command->add_option("--experts", arguments.experts,
                      "How experts get their rows where one axis divides X "
                      "and B or L: gather, rows (each row travels to its "
                      "experts) or rows=1.25 (a device receives at most 1.25 "
                      "times the even share); default: gather or rows, "
                      "whichever moves fewer bytes");
  command->add_option("--name", arguments.names,
                      "Name a dimension that is recognized wrongly, e.g. "
                      "\"*.mlp.c_fc.weight:1=M\"");
  command->add_option("--devices", arguments.devices,
                      "Refuse a plan for another number of devices");
}

namespace {

// A finite number for which `fits` is true; `expected` describes such numbers.
CLI::Validator number(const std::string& expected,
                      const std::function<bool(double)>& fits) {
  return CLI::Validator(
      [=](std::string& text) {
        char* end = nullptr;
        const double value = std::strtod(text.c_str(), &end);
        const bool is_number = !text.empty() && *end == '\0';
        return is_number && std::isfinite(value) && fits(value)
                   ? std::string()
                   : "expected " + expected + ", found '" + text + "'";
      },
      "");
}

CLI::Validator notNegative() {
  return number("a number of at least 0", [](double x) { return x >= 0; });
}

}  // namespace

void addTraining(TrainOptions& train, CLI::App* command) {
  CLI::Option* optimizer =
      command->add_option("--train", train.optimizer,
                          "Compile a training step with this optimizer: sgd, "
                          "adam, adamw, lamb, adafactor, 1bit-adam, "
                          "1bit-lamb or 0/1-adam");
  const auto option = [&](const char* name, auto& value, const char* what) {
    return command->add_option(name, value, what)
        ->capture_default_str()
        ->needs(optimizer);
  };
  const auto share = number("a number from 0 to below 1",
                            [](double x) { return x >= 0 && x < 1; });
  option("--loss", train.loss,
         "Loss: cross-entropy, mse or none (the model has its own)");
  option("--loss-output", train.loss_output,
         "Compute the loss from this output; default: the first");
  option("--ignore-index", train.ignore_index,
         "Ignore positions with this target in the loss");
  option("--label-smoothing", train.label_smoothing,
         "Share of the target spread over all classes")
      ->check(share);
  option("--trained", train.trained,
         "Train only these parameters, as globs: \"h.*;ln_f.*\"; !GLOB leaves "
         "some of them out");
  option("--weight-decay", train.weight_decay, "Weight decay")
      ->check(notNegative());
  option("--no-decay", train.no_decay,
         "Parameters without weight decay, as globs: \"*.bias;*ln*\"");
  option("--beta1", train.beta1, "Decay of Adam's first moment")->check(share);
  option("--beta2", train.beta2, "Decay of Adam's second moment")->check(share);
  option("--epsilon", train.epsilon, "Epsilon of Adam")->check(notNegative());
  option("--momentum", train.momentum, "Momentum of sgd")->check(share);
  command
      ->add_flag("--nesterov", train.nesterov,
                 "Use Nesterov's momentum, for sgd with --momentum")
      ->needs(optimizer);
  option("--lr-scale", train.lr_scale,
         "Scale the learning rates of parameters, as globs and factors: "
         "\"embed*=0.1;*.head.*=10\"; the last match wins");
  option("--keep-zeros", train.keep_zeros,
         "Keep zeros of these pruned matrices at zero, as globs: \"*\"")
      ->check([](const std::string& text) {
        return text.empty() ? "expected globs of matrices, found ''" : "";
      });
  option("--clip-norm", train.clip_norm,
         "Clip the norm of all gradients together to this; 0: do not clip")
      ->check(notNegative());
  command
      ->add_flag("--noise-scale", train.noise_scale,
                 "Measure the gradient noise scale, the critical batch size, "
                 "from the gradients of microbatches; train reports it")
      ->needs(optimizer);
  option("--onebit-warmup", train.onebit_warmup,
         "Warm-up steps the checkpoint has already run: for 1bit-adam with "
         "adamw, for 1bit-lamb with 1bit-lamb without this option");
  option("--pipemare", train.pipemare,
         "With --schedule async and fewer microbatches than stages behind the "
         "first: the number of first updates in which a stage whose weights "
         "are d updates old divides its learning rate, by d at first; 0: none")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 40));
  option("--pipemare-correction", train.pipemare_correction,
         "With --schedule async: compute gradients with the newest weights "
         "minus a moving average of updates, instead of keeping the weights of "
         "the forward pass. The share of an update left in the average after "
         "as many updates as the weights are old, e.g. 0.1; 0: none")
      ->check(number("a number from 0 to below 1",
                     [](double x) { return x >= 0 && x < 1; }));
  option("--loss-scale", train.loss_scale,
         "Initial loss scale, with --precision f16: a power of two")
      ->check(number("a power of two from 1 to 16777216", [](double x) {
        return x >= 1 && x <= 16777216 &&
               std::exp2(std::round(std::log2(x))) == x;
      }));
  command
      ->add_flag("--gradients", train.keep_gradients,
                 "Output the gradients too, named grad.PARAMETER")
      ->needs(optimizer);
}

void addTrainingPlan(PlanArguments& arguments, CLI::App* command) {
  command
      ->add_option("--zero", arguments.zero,
                   "When training, also divide over the axes of B: 1 the "
                   "optimizer states, 2 gradients too, 3 parameters too (ZeRO)")
      ->check(CLI::Range(0, 3));
  command
      ->add_option("--microbatches", arguments.microbatches,
                   "When training, split the batch into this many microbatches "
                   "and accumulate their gradients")
      ->check(CLI::Range(1, 1 << 20));
  command->add_option(
      "--schedule", arguments.schedule,
      "Pipeline schedule of the stages along D: gpipe, 1f1b (the default), "
      "interleaved(v) with v stages per device, zb-h1, zb-v; async-2bw or "
      "async, which do not flush at the end of a step; or a table.csv");
  command
      ->add_option(
          "--recompute", arguments.recompute,
          "Recompute in the backward pass: none, selective (elementwise "
          "operations and norms; the default), full (whole layers), or budget "
          "(as much as the memory limit requires); per layer, the last match "
          "wins, e.g. \"selective;full@h.{0,1}\"")
      ->needs("--train");
}

void addJson(bool& json, CLI::App* command) {
  command->add_flag("--json", json, "Print one JSON object instead of a table");
}

CLI::Validator wholeNumber(int64_t least) {
  return number("a whole number of at least " + std::to_string(least),
                [=](double x) {
                  return x >= static_cast<double>(least) && x == std::floor(x);
                });
}

CLI::Validator shareAboveZero() {
  return number("a number above 0 and up to 1",
                [](double x) { return x > 0 && x <= 1; });
}

ExitCode finish(const PlanArguments& arguments,
                std::optional<plan::Plan>& plan) {
  auto finished = arguments.Finish();
  if (finished.ok()) {
    plan = *std::move(finished);
    return kSuccess;
  }
  complain(std::string(finished.status().message()));
  return absl::IsFailedPrecondition(finished.status()) ? kUserError
                                                       : kUsageError;
}

bool finish(const PlanArguments& arguments, plan::Precision& precision) {
  auto found = arguments.FindPrecision();
  if (!found.ok()) {
    complain(std::string(found.status().message()));
    return false;
  }
  precision = found->value_or(plan::Precision::kF32);
  return true;
}

ExitCode exitCodeOf(Fault fault) {
  return fault == Fault::kOurs ? kInternalError : kUserError;
}

void show(const llvm::json::Value& facts, bool json,
          void (*print)(const llvm::json::Value&, llvm::raw_ostream&)) {
  if (json)
    results() << facts << "\n";
  else
    print(facts, results());
}

void complain(const std::string& what) {
  messages() << "error: " << what << "\n";
}

bool keepsInputFiles(const FilesOfCommand& files) {
  const auto same = [](const std::filesystem::path& a,
                       const std::filesystem::path& b) {
    std::error_code absent;
    return std::filesystem::equivalent(a, b, absent);
  };
  const auto destroys = [&](const std::string& written,
                            const std::string& read) {
    const std::filesystem::path path =
        std::filesystem::absolute(written).lexically_normal();
    const bool holds_model =
        path.extension() == ".json" || path.extension() == ".safetensors";
    return same(path, read) || (holds_model && std::filesystem::exists(path) &&
                                same(path.parent_path(), read));
  };
  for (const auto& [option, written] : files.written)
    for (const std::string& read : files.read) {
      if (written.empty() || read.empty() || !destroys(written, read)) continue;
      complain(option +
               ": expected a file other than those the command reads, found " +
               written + ", which belongs to " + read +
               ": name another to write");
      return false;
    }
  return true;
}

}  // namespace partita::driver
