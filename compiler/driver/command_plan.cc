// partita plan: how to divide a model over a cluster; partita plan diff: what
// two plans differ in; partita slurm: the job that runs one.
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "compiler/driver/choose_plan.h"
#include "compiler/driver/command_options.h"
#include "compiler/driver/commands.h"
#include "compiler/driver/find_architecture.h"
#include "llvm/Support/raw_ostream.h"

namespace partita::driver {
namespace {

struct PlanCommand {
  ModelArguments model;
  std::string row, cluster, precision, memory;
  int64_t batch = 0;
  int devices = 0;
  std::vector<std::string> fixed;
  PlanRequest request;
  bool json = false;
  // Of diff.
  CLI::App* diff = nullptr;
  std::string before, after;
};

bool readModel(PlanCommand& command) {
  planner::Request& asked = command.request.request;
  if (!command.row.empty()) {
    planner::SweepRow row;
    if (!take(parseRow(command.row), row)) return false;
    asked.batch = command.batch;
    asked.architecture = row.architecture;
    asked.software = row.software;
    return true;
  }
  Session session;
  auto module = command.model.import(session);
  if (!module) return false;
  auto found = findArchitecture(*module);
  if (mlir::failed(found)) return false;
  asked.architecture = found->architecture;
  command.request.names = found->names;
  asked.batch = found->batch;
  if (command.batch == 0 || command.batch == found->batch) return true;
  complain("--batch: expected the model's own, " +
           std::to_string(found->batch) + ", found " +
           std::to_string(command.batch) + ": --dim batch=" +
           std::to_string(command.batch) + " gives the model another");
  return false;
}

bool readMachine(PlanCommand& command) {
  planner::Request& asked = command.request.request;
  if (!take(planner::OpenCluster(command.cluster), asked.cluster)) return false;
  if (command.devices > 0 &&
      !take(planner::Resize(asked.cluster, command.devices), asked.cluster))
    return false;
  if (!take(parseFixed(command.fixed), asked.fixed)) return false;
  if (!command.memory.empty()) {
    int64_t bytes = 0;
    absl::StatusOr<int64_t> parsed = plan::ParseBytes(command.memory);
    if (!parsed.ok()) {
      complain("--memory: " + std::string(parsed.status().message()));
      return false;
    }
    bytes = *parsed;
    asked.memory = static_cast<double>(bytes);
  }
  // A model computes in what it has; a row is of no file.
  asked.precision = command.row.empty() ? planner::Precision::kF32
                                        : planner::Precision::kBf16;
  for (planner::Precision each :
       {planner::Precision::kF32, planner::Precision::kBf16,
        planner::Precision::kF16})
    if (command.precision == planner::ToString(each)) asked.precision = each;
  return true;
}

int run(PlanCommand& command) {
  if (!command.model.finish()) return kUsageError;
  if (command.model.model.empty() == command.row.empty()) {
    complain("expected a model, or --row with its sizes");
    return kUsageError;
  }
  if (command.cluster.empty()) {
    complain(
        "expected --cluster: a cluster.yaml, or a name as \"8x a100-80-sxm\"");
    return kUsageError;
  }
  if (!command.row.empty() && command.batch == 0) {
    complain("expected --batch: the sequences of a step, of all devices");
    return kUsageError;
  }
  if (!readMachine(command) || !readModel(command)) return kUserError;
  llvm::json::Value facts = nullptr;
  if (!take(choosePlan(command.request), facts)) return kUserError;
  show(facts, command.json, printChoice);
  return kSuccess;
}

// As diff: 1 where they differ.
int runDiff(const PlanCommand& command) {
  plan::Plan before, after;
  if (!take(plan::ReadPlan(command.before), before) ||
      !take(plan::ReadPlan(command.after), after))
    return kUsageError;
  const std::vector<std::string> lines = plan::DiffPlans(before, after);
  for (const std::string& line : lines) llvm::outs() << line << "\n";
  return lines.empty() ? kSuccess : kUserError;
}

void addDiff(PlanCommand& command, CLI::App* app) {
  command.diff = app->add_subcommand(
      "diff", "Say what two plan files differ in: exit code 1 if they do");
  command.diff->add_option("before", command.before, "A plan (.yaml)")
      ->required();
  command.diff->add_option("after", command.after, "Another")->required();
  command.diff->footer("Example:\n  partita plan diff a.yaml b.yaml");
}

}  // namespace

Command addPlanner(CLI::App& app) {
  auto state = std::make_shared<PlanCommand>();
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
      ->check(CLI::PositiveNumber);
  command
      ->add_option("--batch", state->batch,
                   "Sequences of a step, of all devices")
      ->check(CLI::PositiveNumber);
  command
      ->add_option("--precision", state->precision,
                   "What parameters and activations are stored as: f32, bf16 "
                   "or f16; bf16 of a --row")
      ->check(CLI::IsMember({"f32", "bf16", "f16"}));
  command->add_option("--memory", state->memory,
                      "What a device may take, as in \"40 GB\"; else all it "
                      "has");
  command
      ->add_option("--fix", state->fixed,
                   "What is not to be chosen: tp=8,zero=1,schedule=1f1b")
      ->allow_extra_args(false);
  command->add_option("-o,--output", state->request.output,
                      "The plan file to write");
  addJson(state->json, command);
  addDiff(*state, command);
  command->footer(
      "Examples:\n  partita plan gpt2/ --dim batch=64,seq=1024 --cluster "
      "\"8x a100-80-sxm\" -o plan.yaml\n  partita plan --row "
      "layers=96,hidden=12288,heads=96,seq_len=2048 --batch 1536 --cluster "
      "\"1536x a100-80-sxm\"");
  return {command, [state] {
            return state->diff->parsed() ? runDiff(*state) : run(*state);
          }};
}

Command addSlurm(CLI::App& app) {
  struct Slurm {
    std::string artifact, plan, cluster;
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
  command->footer(
      "Example:\n  partita slurm step.partita --plan plan.yaml --cluster "
      "jean-zay-a100 > job.sh && sbatch job.sh --data tokens.bin --steps 1000");
  return {
      command, [state] {
        plan::Plan plan;
        planner::Cluster cluster;
        std::string script;
        if (!take(plan::ReadPlan(state->plan), plan) ||
            !take(planner::OpenCluster(state->cluster), cluster) ||
            !take(planner::SlurmScript(plan, cluster, state->artifact), script))
          return kUserError;
        llvm::outs() << script;
        return kSuccess;
      }};
}

}  // namespace partita::driver
