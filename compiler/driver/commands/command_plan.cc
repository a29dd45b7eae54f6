// partita plan: how to divide a model over a cluster; partita plan diff: what
// two plans differ in; partita slurm: the job that runs one.
#include <memory>
#include <optional>
#include <string>

#include "CLI/CLI.hpp"
#include "compiler/core/precision.h"
#include "compiler/driver/check_model.h"
#include "compiler/driver/commands/command_options.h"
#include "compiler/driver/commands/commands.h"
#include "compiler/driver/compile.h"
#include "compiler/driver/planning/choose_plan.h"
#include "compiler/driver/planning/model_of_row.h"
#include "compiler/driver/planning/parse_choices.h"
#include "compiler/driver/verify/shrink_model.h"
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

namespace partita::driver {
namespace {

struct PlanCommand {
  std::optional<Session> session;
  ModelArguments model;
  std::string row, cluster, precision, memory;
  int64_t batch = 0;
  int devices = 0;
  std::vector<std::string> fixed;
  planner::SweepRow sizes;  // of `row`
  mlir::OwningOpRef<mlir::ModuleOp> module;
  PlanRequest request;
  bool json = false;
  // Of diff.
  CLI::App* diff = nullptr;
  std::string before, after;
};

// The model with `layers` layers and another batch; null where its batch is no
// dimension that can be given.
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
  // What importing remarks has been said.
  mlir::ScopedDiagnosticHandler quiet(
      command.session->context(),
      [](mlir::Diagnostic&) { return mlir::success(); });
  auto module = arguments.import(*command.session);
  if (!module) return nullptr;
  auto dropped = dropRepeatedLayers(
      *module, layers, [](llvm::StringRef, llvm::StringRef) { return true; });
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
    llvm::errs() << "warning: --memory: "
                 << base::FormatBytes(static_cast<int64_t>(asked.memory))
                 << " is more than the "
                 << base::FormatBytes(static_cast<int64_t>(device.room()))
                 << " that programs have on " << planner::NameOf(device)
                 << ", where the plan may not fit; for a device that has it, "
                    "name a --cluster file with that memory\n";
  return true;
}

// True where the plan file can be written, or none is asked for: a search that
// nobody gets the result of is not begun.
bool canWrite(const std::string& path) {
  if (path.empty()) return true;
  auto file = base::AtomicFile::Create(path);
  if (file.ok()) return true;
  complain("-o: " + std::string(file.status().message()));
  return false;
}

// What options say by themselves.
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
      complain("--memory: expected at least a byte a device, found '" +
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
  // A model computes in what it has; a row is of no file.
  const std::string precision = !command.precision.empty() ? command.precision
                                : command.row.empty()      ? "f32"
                                                           : "bf16";
  asked.precisions.clear();
  for (const core::Precision each :
       {core::Precision::kF32, core::Precision::kBF16, core::Precision::kF16})
    if (precision == core::ToString(each) ||
        (precision == "auto" && each != core::Precision::kF16))
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
        "--by-layer: expected a model, whose layers it divides, found "
        "--row");
    return kUsageError;
  }
  if (const std::string other = command.model.given();
      !command.row.empty() && !other.empty()) {
    complain(other +
             ": expected a model, which it is of, found --row, whose "
             "columns and --batch say all sizes: leave it out");
    return kUsageError;
  }
  if (!command.row.empty() && command.batch == 0) {
    complain("expected --batch: the sequences of a step, of all devices");
    return kUsageError;
  }
  if (!readOptions(command) ||
      !keepsWhatItReads({{command.model.model, command.model.options.weights,
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
  llvm::json::Value facts = nullptr;
  if (!take(choosePlan(command.request), facts)) return kUserError;
  show(facts, command.json, printChoice);
  return kSuccess;
}

// As diff(1): to differ is an answer, not to be readable is trouble.
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
      "Say what two plan files differ in: exit code 0 if in nothing, 1 if in "
      "something, 2 if one cannot be read");
  command.diff->add_option("before", command.before, "A plan (.yaml)")
      ->required();
  command.diff->add_option("after", command.after, "Another")->required();
  addJson(command.json, command.diff);
  command.diff->footer("Example:\n  partita plan diff a.yaml b.yaml");
}

bool isOfDevices(const program::Artifact& artifact,
                 const planner::Cluster& cluster) {
  const flatbuffers::String* target = artifact.program().target();
  const std::string own = target == nullptr ? "cpu" : target->str();
  const bool gpus = cluster.device.is_gpu;
  if ((own.rfind("cuda:", 0) == 0) == gpus) return true;
  complain("expected a program for the " + std::string(gpus ? "GPUs" : "CPUs") +
           " of " + cluster.name + ", found " + artifact.path() +
           ", which is for " + own + ": compile it with --target " +
           (gpus ? "cuda:sm_80, or what architecture they have" : "cpu"));
  return false;
}

// Of a program that is not here, as where it is compiled elsewhere, nothing can
// be said.
bool isOfPlan(const std::string& path, const plan::Plan& plan,
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
  const std::string own = program::DescribeMesh(artifact->program().mesh());
  if (own == mesh) return isOfDevices(*artifact, cluster);
  complain("expected a program for the plan's devices, " + mesh + ", found " +
           path + ", which is for " + (own.empty() ? "one device" : own) +
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
                      "A model by its sizes instead: layers=96,hidden=12288,"
                      "heads=96,seq_len=2048,vocab=51200; columns as in "
                      "simulate --sweep");
  command->add_option(
      "--cluster", state->cluster,
      "A cluster.yaml, or a name: a100-80-sxm, \"64x h100-sxm\", "
      "\"2 nodes x v100-32-sxm2\", jean-zay-a100");
  command
      ->add_option("--devices", state->devices,
                   "How many of the cluster's devices to use")
      ->check(wholeNumber(1));
  command
      ->add_option("--batch", state->batch,
                   "Sequences of a step, of all devices")
      ->check(wholeNumber(1));
  command
      ->add_option("--precision", state->precision,
                   "Store parameters and activations as f32, bf16 or f16, or "
                   "choose the faster of f32 and bf16: auto; bf16 of a --row, "
                   "else f32")
      ->check(CLI::IsMember({"f32", "bf16", "f16", "auto"}));
  command->add_option("--memory", state->memory,
                      "What a device may take, as in \"40 GB\"; else all it "
                      "has");
  command
      ->add_option("--fix", state->fixed,
                   "What is not to be chosen: tp=8,zero=1,schedule=1f1b")
      ->allow_extra_args(false);
  command->add_flag("--by-layer", state->request.by_layer,
                    "Divide each layer in its own way: by images, rows, widths "
                    "and heads, or tokens; so are models that are no "
                    "transformer of layers that are alike, as CoAtNets");
  command->add_option("--target", state->request.options.target,
                      "Compile for cpu, or cuda:sm_90 (sm_80 ...); else for "
                      "the cluster's devices");
  command
      ->add_option("--effort", state->request.effort,
                   "Compile and simulate plans of about this many "
                   "instructions in all before the best of them is taken")
      ->check(wholeNumber(1));
  command->add_option("-o,--output", state->request.output,
                      "The plan file to write");
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
                   "A cluster.yaml, or a name, as of partita plan")
      ->required();
  command->add_option("--time", state->options.time,
                      "How long the job may take, as Slurm has it: minutes, "
                      "HH:MM:SS or DAYS-HH:MM:SS");
  command->add_option("--account", state->options.account,
                      "Whom it is charged to");
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
                !isOfPlan(state->artifact, plan, cluster) ||
                !take(planner::SlurmScript(plan, cluster, state->artifact,
                                           state->options),
                      script))
              return kUserError;
            llvm::outs() << script;
            return kSuccess;
          }};
}

}  // namespace partita::driver
