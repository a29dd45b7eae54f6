// partita plan: chooses how to divide a model over a cluster. partita plan
// diff: compares two plans. partita slurm: prints the job that runs a plan.
#include <memory>
#include <optional>
#include <string>

#include "CLI/CLI.hpp"
#include "compiler/core/precision.h"
#include "compiler/driver/check_model.h"
#include "compiler/driver/commands/command_options.h"
#include "compiler/driver/commands/commands.h"
#include "compiler/driver/compile.h"
#include "compiler/driver/console.h"
#include "compiler/driver/planning/choose_plan.h"
#include "compiler/driver/planning/model_of_row.h"
#include "compiler/driver/planning/parse_choices.h"
#include "compiler/driver/verify/shrink_model.h"
#include "compiler/driver/zero_one.h"
#include "compiler/planner/search/write_plan.h"
#include "dialects/nn/dialect.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/quantity.h"
#include "runtime/program/artifact.h"
#include "runtime/program/mesh.h"
#include "runtime/program/types.h"

namespace partita::driver {
namespace {

struct PlanCommand {
  std::optional<Session> session;
  ModelArguments model;
  std::string row, cluster, precision, memory;
  int64_t batch = 0;
  int devices = 0;
  std::vector<std::string> fixed;
  planner::SweepRow sizes;  // sizes in `row`
  mlir::OwningOpRef<mlir::ModuleOp> module;
  PlanRequest request;
  bool json = false;
  // Arguments of partita plan diff.
  CLI::App* diff = nullptr;
  std::string before, after;
};

// The model with `layers` layers and another batch size; null if the batch size
// of the model cannot be set.
mlir::OwningOpRef<mlir::ModuleOp> makeSmaller(PlanCommand& command,
                                              int64_t layers, int64_t batch) {
  if (!command.row.empty()) {
    planner::Architecture few = command.sizes.architecture;
    few.layers = layers;
    return modelOfRow(few, batch, command.session->context());
  }
  ModelArguments arguments = command.model;
  auto found = arguments.options.dims.find("batch");
  if (found == arguments.options.dims.end()) return nullptr;
  found->second = batch;
  // Importing the whole model has already printed these remarks.
  mlir::ScopedDiagnosticHandler quiet(
      command.session->context(),
      [](mlir::Diagnostic&) { return mlir::success(); });
  auto module = arguments.import(*command.session);
  if (!module) return nullptr;
  auto dropped = dropRepeatedLayers(
      *module, layers, [](llvm::StringRef, llvm::StringRef) { return true; },
      Kinds::kMostCalled);
  if (mlir::failed(dropped) || *dropped == 0) return nullptr;
  auto main = module->lookupSymbol<mlir::func::FuncOp>("main");
  for (unsigned i = main.getNumArguments(); i-- > 0;) {
    auto kind = main.getArgAttrOfType<mlir::StringAttr>(i, nn::kKindAttr);
    if (kind && kind.getValue() == "parameter" &&
        main.getArgument(i).use_empty() && mlir::failed(main.eraseArgument(i)))
      return nullptr;
  }
  return module;
}

ExitCode readModel(PlanCommand& command) {
  command.session.emplace();
  command.model.prepareFor(command.request.options.train);
  command.model.options.training = true;
  command.module = command.row.empty()
                       ? command.model.import(*command.session)
                       : modelOfRow(command.sizes.architecture, command.batch,
                                    command.session->context());
  if (!command.module || mlir::failed(checkModel(*command.module)))
    return kUserError;
  command.request.model = *command.module;
  if (command.row.empty())
    command.request.options.source_folder = command.model.folder();
  if (!command.row.empty() || command.model.options.dims.count("batch") > 0)
    command.request.make = [&command](int64_t layers, int64_t batch) {
      return makeSmaller(command, layers, batch);
    };
  command.request.batch = command.batch;
  return kSuccess;
}

bool readMachine(PlanCommand& command) {
  PlanRequest& asked = command.request;
  if (!take(planner::OpenCluster(command.cluster), asked.cluster)) return false;
  if (command.devices > asked.cluster.devices) {
    complain("--devices: expected at most the " +
             std::to_string(asked.cluster.devices) + " of " +
             asked.cluster.name + ", found " + std::to_string(command.devices) +
             ": name a larger cluster, as in --cluster \"" +
             std::to_string(command.devices) + "x a100-80-sxm\"");
    return false;
  }
  if (command.devices > 0 &&
      !take(planner::Resize(asked.cluster, command.devices), asked.cluster))
    return false;
  const planner::Device& device = asked.cluster.device;
  if (asked.memory > device.room())
    messages() << "warning: --memory: "
               << base::FormatBytes(static_cast<int64_t>(asked.memory))
               << " is more than the "
               << base::FormatBytes(static_cast<int64_t>(device.room()))
               << " that programs have on " << planner::NameOf(device)
               << ", where the plan may not fit; for a device that has it, "
                  "name a --cluster file with that memory\n";
  return true;
}

// Returns true if the plan file can be written, or none is asked for. A search
// whose result cannot be written is not begun.
bool canWrite(const std::string& path) {
  if (path.empty()) return true;
  const auto file = base::AtomicFile::Create(path);
  if (file.ok()) return true;
  complain("-o: " + std::string(file.status().message()));
  return false;
}

// Reads the options that need neither the model nor the cluster.
bool readOptions(PlanCommand& command) {
  PlanRequest& asked = command.request;
  if (!take(parseFixed(command.fixed), asked.fixed)) return false;
  if (!command.memory.empty()) {
    absl::StatusOr<int64_t> bytes = plan::ParseBytes(command.memory);
    if (!bytes.ok()) {
      complain("--memory: " + std::string(bytes.status().message()));
      return false;
    }
    if (*bytes < 1) {
      complain("--memory: expected at least 1 byte per device, found '" +
               command.memory +
               "': leave it out to let plans take all that a device has");
      return false;
    }
    asked.memory = static_cast<double>(*bytes);
  }
  if (!command.row.empty()) {
    if (!take(parseRow(command.row), command.sizes)) return false;
    if (!command.sizes.software->own) {
      complain(
          "--row: framework: expected none, as plans are of Partita's own "
          "programs; partita simulate --sweep predicts other software");
      return false;
    }
  }
  // Defaults: f32 for a model, bf16 for a --row.
  const std::string precision = !command.precision.empty() ? command.precision
                                : command.row.empty()      ? "f32"
                                                           : "bf16";
  asked.precisions.clear();
  for (const core::Precision each :
       {core::Precision::kF32, core::Precision::kBF16, core::Precision::kF16,
        core::Precision::kF8})
    if (precision == core::ToString(each) ||
        (precision == "auto" &&
         (each == core::Precision::kF32 || each == core::Precision::kBF16)))
      asked.precisions.push_back(each);
  return true;
}

int run(PlanCommand& command) {
  if (!command.model.finish()) return kUsageError;
  if (command.model.model.empty() == command.row.empty()) {
    complain(command.row.empty()
                 ? "expected a model, or --row with its sizes"
                 : "expected a model, or --row with its sizes, found both: '" +
                       command.model.model + "' and --row; leave out one");
    return kUsageError;
  }
  if (command.cluster.empty()) {
    complain(
        "expected --cluster: a cluster.yaml, or a name as \"8x a100-80-sxm\"");
    return kUsageError;
  }
  if (!command.row.empty() && command.request.by_layer) {
    complain(
        "--by-layer: applies to a model and cannot be combined with --row");
    return kUsageError;
  }
  if (const std::string other = command.model.given();
      !command.row.empty() && !other.empty()) {
    complain(other +
             ": applies to a model and cannot be combined with --row, whose "
             "columns and --batch give all sizes: leave it out");
    return kUsageError;
  }
  if (!command.row.empty() && command.batch == 0) {
    complain("expected --batch: the sequences per step over all devices");
    return kUsageError;
  }
  if (!readOptions(command) ||
      !keepsInputFiles({{command.model.model, command.model.options.weights,
                         command.cluster},
                        {{"-o", command.request.output}}}))
    return kUsageError;
  if (!readMachine(command) || !canWrite(command.request.output))
    return kUserError;
  if (std::string wrong = command.request.options.target.empty()
                              ? ""
                              : checkMachine(command.request.options);
      !wrong.empty()) {
    complain(wrong);
    return kUsageError;
  }
  if (const ExitCode code = readModel(command); code != kSuccess) return code;
  tellStepOf(command.request.options.train);
  llvm::json::Value facts = nullptr;
  if (!take(choosePlan(command.request), facts)) return kUserError;
  show(facts, command.json, printChoice);
  return kSuccess;
}

// Exit codes as in diff(1).
constexpr int kSame = 0, kDiffer = 1, kTrouble = 2;

int runDiff(const PlanCommand& command) {
  plan::Plan before, after;
  if (!take(plan::ReadPlan(command.before), before) ||
      !take(plan::ReadPlan(command.after), after))
    return kTrouble;
  const std::vector<std::string> lines = plan::DiffPlans(before, after);
  show(llvm::json::Object{{"kind", "plan_diff"},
                          {"before", command.before},
                          {"after", command.after},
                          {"differences", llvm::json::Array(lines)}},
       command.json,
       [](const llvm::json::Value& facts, llvm::raw_ostream& stream) {
         for (const llvm::json::Value& line :
              *facts.getAsObject()->getArray("differences"))
           stream << *line.getAsString() << "\n";
       });
  return lines.empty() ? kSame : kDiffer;
}

void addDiff(PlanCommand& command, CLI::App* app) {
  command.diff = app->add_subcommand(
      "diff",
      "Compare two plans. Exits 0 if equal, 1 if different, 2 if unreadable");
  command.diff->add_option("before", command.before, "A plan (.yaml)")
      ->required();
  command.diff
      ->add_option("after", command.after,
                   "The plan (.yaml) to compare it with")
      ->required();
  addJson(command.json, command.diff);
  command.diff->footer("Example:\n  partita plan diff a.yaml b.yaml");
}

bool matchesDevices(const program::Artifact& artifact,
                    const planner::Cluster& cluster) {
  const bool gpus = cluster.device.is_gpu;
  if (program::IsForGpus(artifact.program()) == gpus) return true;
  complain("expected a program for the " + std::string(gpus ? "GPUs" : "CPUs") +
           " of " + cluster.name + ", found " + artifact.path() +
           ", which is for " + program::TargetOf(artifact.program()) +
           ": compile it with --target " +
           (gpus ? "cuda:sm_80, or what architecture they have" : "cpu"));
  return false;
}

// Accepts a program that is not on this machine, since it may be compiled
// elsewhere.
bool matchesPlan(const std::string& path, const plan::Plan& plan,
                 const planner::Cluster& cluster) {
  if (!llvm::sys::fs::exists(path)) return true;
  auto artifact = program::Artifact::Open(path);
  if (!artifact.ok()) {
    complain(std::string(artifact.status().message()));
    return false;
  }
  std::string mesh;
  for (const core::Axis& axis : plan.mesh.axes)
    mesh +=
        (mesh.empty() ? "" : ",") + axis.name + "=" + std::to_string(axis.size);
  const std::string own_mesh =
      program::DescribeMesh(artifact->program().mesh());
  if (own_mesh == mesh) return matchesDevices(*artifact, cluster);
  complain("expected a program for the plan's devices, " + mesh + ", found " +
           path + ", which is for " +
           (own_mesh.empty() ? "one device" : own_mesh) +
           ": compile it with --plan");
  return false;
}

}  // namespace

Command addPlanner(CLI::App& app) {
  auto state = std::make_shared<PlanCommand>();
  state->request.options.target.clear();
  CLI::App* command = app.add_subcommand(
      "plan", "Choose how to divide the training of a model over a cluster");
  state->model.add(command, kAnyModel);
  command->get_option("model")->required(false);
  command->add_option("--row", state->row,
                      "Give the sizes of the model instead: "
                      "layers=96,hidden=12288,heads=96,seq_len=2048,vocab="
                      "51200; columns as in simulate --sweep");
  command->add_option(
      "--cluster", state->cluster,
      "A cluster.yaml, or a name: a100-80-sxm, \"64x h100-sxm\", "
      "\"2 nodes x v100-32-sxm2\", jean-zay-a100");
  command
      ->add_option("--devices", state->devices,
                   "Use this many of the cluster's devices; default: all")
      ->check(wholeNumber(1));
  command
      ->add_option("--batch", state->batch,
                   "Sequences per step over all devices")
      ->check(wholeNumber(1));
  command
      ->add_option(
          "--precision", state->precision,
          "Store parameters and activations as f32, bf16 or f16, or as the "
          "faster of f32 and bf16: auto; f8: bf16, with factors of linear "
          "layers rounded to 8 bits; default: bf16 for a --row, else f32")
      ->check(CLI::IsMember({"f32", "bf16", "f16", "f8", "auto"}));
  command->add_option(
      "--memory", state->memory,
      "Limit the memory per device, e.g. \"40 GB\"; default: all it has");
  command
      ->add_option("--fix", state->fixed,
                   "Fix these choices: tp=8,zero=1,schedule=1f1b")
      ->allow_extra_args(false);
  command->add_flag("--by-layer", state->request.by_layer,
                    "Divide each layer in its own way: by images, rows, widths "
                    "and heads, or tokens. Always on for models that are not "
                    "transformers with identical layers, e.g. CoAtNets");
  command->add_option("--target", state->request.options.target,
                      "Compile for cpu or a GPU, e.g. cuda:sm_90; default: the "
                      "cluster's devices");
  command
      ->add_option("--effort", state->request.effort,
                   "Compile and simulate plans with about this many "
                   "instructions in total, then take the best; of long "
                   "programs, at least 24 plans are priced")
      ->check(wholeNumber(1));
  command->add_option("-o,--output", state->request.output,
                      "Write the plan to this file");
  addTraining(state->request.options.train, command);
  addJson(state->json, command);
  addDiff(*state, command);
  command->footer(
      "Examples:\n  partita plan gpt2/ --dim batch=64,seq=1024 --cluster "
      "\"8x a100-80-sxm\" -o plan.yaml\n  partita plan coatnet-0 --dim "
      "batch=4 --cluster \"8x a100-80-sxm\" -o plan.yaml\n  partita plan --row "
      "layers=96,hidden=12288,heads=96,seq_len=2048 --batch 1536 --cluster "
      "\"1536x a100-80-sxm\"");
  return {command, [state] {
            return state->diff->parsed() ? runDiff(*state) : run(*state);
          }};
}

Command addSlurm(CLI::App& app) {
  struct Slurm {
    std::string artifact, plan, cluster;
    planner::SlurmOptions options;
  };
  auto state = std::make_shared<Slurm>();
  CLI::App* command = app.add_subcommand(
      "slurm", "Print the job for Slurm that trains a compiled model");
  command->add_option("model", state->artifact, "A compiled model (.partita)")
      ->required();
  command->add_option("--plan", state->plan, "The plan it was compiled with")
      ->required();
  command
      ->add_option("--cluster", state->cluster,
                   "A cluster.yaml, or a name as for partita plan")
      ->required();
  command->add_option("--time", state->options.time,
                      "Time limit of the job, in Slurm's format: minutes, "
                      "HH:MM:SS or DAYS-HH:MM:SS");
  command->add_option("--account", state->options.account, "Account to charge");
  command->footer(
      "Example:\n  partita slurm step.partita --plan plan.yaml --cluster "
      "jean-zay-a100 --time 20:00:00 --account abc@a100 > job.sh && sbatch "
      "job.sh --data tokens.bin --steps 1000");
  return {command, [state] {
            if (absl::Status status = planner::CheckSlurm(state->options);
                !status.ok()) {
              complain(std::string(status.message()));
              return kUsageError;
            }
            plan::Plan plan;
            planner::Cluster cluster;
            std::string script;
            if (!take(plan::ReadPlan(state->plan), plan) ||
                !take(planner::OpenCluster(state->cluster), cluster) ||
                !matchesPlan(state->artifact, plan, cluster) ||
                !take(planner::SlurmScript(plan, cluster, state->artifact,
                                           state->options),
                      script))
              return kUserError;
            results() << script;
            return kSuccess;
          }};
}

}  // namespace partita::driver
