// partita explain and partita verify: the effects of a plan on a model.
#include <unistd.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "CLI/CLI.hpp"
#include "compiler/driver/check_model.h"
#include "compiler/driver/commands/command_options.h"
#include "compiler/driver/commands/commands.h"
#include "compiler/driver/console.h"
#include "compiler/driver/explain.h"
#include "compiler/driver/lost_names.h"
#include "compiler/driver/model_plan.h"
#include "compiler/driver/planning/explain_times.h"
#include "compiler/driver/verify/verify.h"
#include "compiler/driver/zero_one.h"
#include "compiler/planner/cluster/cluster.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

namespace partita::driver {
namespace {

// A model and the plan to judge.
struct JudgeCommand {
  ModelArguments model;
  PlanArguments plan;
  VerifyOptions verify;
  std::string cluster;  // of explain; empty: this machine, if it was measured
  bool json = false;
};

int judge(JudgeCommand& command,
          const std::function<mlir::FailureOr<llvm::json::Value>(
              mlir::ModuleOp, const plan::Plan&, Fault&)>& judgement,
          void (*print)(const llvm::json::Value&, llvm::raw_ostream&)) {
  ModelArguments& arguments = command.model;
  if (!arguments.finish()) return kUsageError;
  std::optional<plan::Plan> plan;
  if (ExitCode code = finish(command.plan, plan); code != kSuccess) return code;
  Session session;
  auto module = arguments.import(session);
  if (!module || mlir::failed(checkModel(*module))) return kUserError;
  if (!plan) plan = planOfModel(*module, arguments.model);
  if (!plan) {
    complain("expected a plan to judge: --plan FILE, or --mesh and --shard");
    return kUsageError;
  }
  Fault fault = Fault::kUser;
  auto result = judgement(*module, *plan, fault);
  if (mlir::failed(result)) return exitCodeOf(fault);
  show(*result, command.json, print);
  const llvm::json::Object* facts = result->getAsObject();
  return facts->getBoolean("equal").value_or(true) ? kSuccess : kUserError;
}

// The cluster that --cluster names, or this machine after `partita measure`.
// Null if neither is there. False after a complaint.
bool findCluster(const JudgeCommand& command,
                 std::optional<planner::Cluster>& cluster) {
  const std::string local = planner::LocalClusterPath();
  if (command.cluster.empty() && !llvm::sys::fs::exists(local)) return true;
  auto found =
      planner::OpenCluster(command.cluster.empty() ? local : command.cluster);
  if (found.ok())
    cluster = *std::move(found);
  else if (!command.cluster.empty())
    complain(std::string(found.status().message()));
  return found.ok() || command.cluster.empty();
}

// Adds times to what explainPlan returned. Fails after a complaint, but only if
// the user named the cluster.
mlir::LogicalResult addTimesOn(const planner::Cluster& cluster, bool is_asked,
                               mlir::ModuleOp module, const plan::Plan& plan,
                               const TrainOptions* train,
                               llvm::json::Object& facts) {
  const absl::Status status =
      plan.mesh.Size() <= cluster.devices
          ? addTimes(module, plan, train, cluster, facts)
          : absl::InvalidArgumentError(
                llvm::formatv("--cluster: expected at least {0} devices, which "
                              "the plan's mesh has, found {1} with {2}; name a "
                              "larger cluster, as in \"{0}x a100-80-sxm\"",
                              plan.mesh.Size(), cluster.name, cluster.devices)
                    .str());
  if (status.ok() || !is_asked) return mlir::success();
  complain(std::string(status.message()));
  return mlir::failure();
}

int explain(JudgeCommand& command) {
  TrainOptions& train = command.verify.train;
  std::optional<planner::Cluster> cluster;
  if (!take(command.plan.FindRecompute(), train.recompute)) return kUsageError;
  if (!findCluster(command, cluster)) return kUserError;
  command.model.prepareFor(train);
  return judge(
      command,
      [&](mlir::ModuleOp module, const plan::Plan& plan, Fault& fault) {
        train.microbatches = plan.microbatches;
        const TrainOptions* trained =
            train.optimizer.empty() ? nullptr : &train;
        reportLostNames(module, trained != nullptr);
        tellStepOf(train);
        auto facts = explainPlan(module, plan, trained, &fault);
        if (mlir::succeeded(facts) && cluster &&
            mlir::failed(addTimesOn(*cluster, !command.cluster.empty(), module,
                                    plan, trained, *facts->getAsObject())))
          facts = mlir::failure();
        return facts;
      },
      printExplanation);
}

int verify(JudgeCommand& command) {
  TrainOptions& train = command.verify.train;
  if (!take(command.plan.FindRecompute(), train.recompute)) return kUsageError;
  command.model.prepareFor(train);
  command.model.options.small_dims = true;
  command.verify.source_folder = command.model.folder();
  if (isatty(STDERR_FILENO)) command.verify.progress = &messages();
  return judge(
      command,
      [&](mlir::ModuleOp module, const plan::Plan& plan, Fault& fault) {
        if (plan.precision.value_or(plan::Precision::kF32) !=
            plan::Precision::kF32)
          messages()
              << "note: comparing in f32, not in the plan's precision, since "
                 "rounding hides errors of divisions\n";
        return verifyPlan(module, plan, command.verify, &fault);
      },
      printVerification);
}

std::shared_ptr<JudgeCommand> addJudge(CLI::App* command) {
  auto state = std::make_shared<JudgeCommand>();
  state->model.add(command, kAnyModel);
  addPlan(state->plan, command);
  addJson(state->json, command);
  return state;
}

}  // namespace

Command addExplain(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("explain",
                         "Show what a divided model sends, and why; with "
                         "--train, what a training step sends");
  auto state = addJudge(command);
  addTraining(state->verify.train, command);
  addTrainingPlan(state->plan, command);
  command->add_option("--cluster", state->cluster,
                      "Predict times on this cluster.yaml, or a name as \"8x "
                      "a100-80-sxm\"; default: this machine, if partita "
                      "measure has measured it");
  command->footer(
      "Example:\n  partita explain gpt2/ --dim batch=8,seq=128 --mesh tensor=2 "
      "--shard \"M=tensor,N=tensor,V=tensor;L=tensor\"");
  return {command, [state] { return explain(*state); }};
}

Command addVerify(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "verify",
      "Compare the divided model with the undivided one, op by op; with "
      "--train, gradients and new parameters too");
  auto state = addJudge(command);
  addTraining(state->verify.train, command);
  addTrainingPlan(state->plan, command);
  command->add_flag(
      "--full", state->verify.full,
      "Run all layers of a large model instead of two of each repeated kind");
  command->footer(
      "Sizes that are not given are small: batch 3, seq 8.\n"
      "Example:\n  partita verify gpt2/ --mesh data=2 --shard B=data");
  return {command, [state] { return verify(*state); }};
}

}  // namespace partita::driver
