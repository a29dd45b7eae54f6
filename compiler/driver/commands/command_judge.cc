// partita explain and partita verify: the effects of a plan on a model.
#include <unistd.h>

#include <functional>
#include <memory>

#include "CLI/CLI.hpp"
#include "compiler/driver/check_model.h"
#include "compiler/driver/commands/command_options.h"
#include "compiler/driver/commands/commands.h"
#include "compiler/driver/explain.h"
#include "compiler/driver/model_plan.h"
#include "compiler/driver/verify/verify.h"
#include "llvm/Support/raw_ostream.h"

namespace partita::driver {
namespace {

// A model and the plan to judge.
struct JudgeCommand {
  ModelArguments model;
  PlanArguments plan;
  VerifyOptions verify;
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

int explain(JudgeCommand& command) {
  TrainOptions& train = command.verify.train;
  if (!take(command.plan.FindRecompute(), train.recompute)) return kUsageError;
  command.model.options.training = !train.optimizer.empty();
  return judge(
      command,
      [&](mlir::ModuleOp module, const plan::Plan& plan, Fault& fault) {
        train.microbatches = plan.microbatches;
        return explainPlan(module, plan,
                           train.optimizer.empty() ? nullptr : &train, &fault);
      },
      printExplanation);
}

int verify(JudgeCommand& command) {
  TrainOptions& train = command.verify.train;
  if (!take(command.plan.FindRecompute(), train.recompute)) return kUsageError;
  command.model.options.training = !train.optimizer.empty();
  command.model.options.small_dims = true;
  command.verify.source_folder = command.model.folder();
  if (isatty(STDERR_FILENO)) command.verify.progress = &llvm::errs();
  return judge(
      command,
      [&](mlir::ModuleOp module, const plan::Plan& plan, Fault& fault) {
        if (plan.precision.value_or(plan::Precision::kF32) !=
            plan::Precision::kF32)
          llvm::errs()
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
