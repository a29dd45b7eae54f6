// partita inspect: describes a model, an artifact or a plan.
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "compiler/core/check_schedule.h"
#include "compiler/core/schedule_csv.h"
#include "compiler/driver/commands/command_options.h"
#include "compiler/driver/commands/commands.h"
#include "compiler/driver/console.h"
#include "compiler/driver/inspect/inspect.h"
#include "compiler/driver/inspect/inspect_dims.h"
#include "compiler/driver/inspect/inspect_page.h"
#include "compiler/driver/inspect/inspect_plan.h"
#include "compiler/driver/inspect/inspect_schedule.h"
#include "compiler/driver/zero_one.h"
#include "compiler/plan/plan_schedule.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

namespace partita::driver {
namespace {

struct InspectCommand {
  ModelArguments model;
  std::vector<std::string> names;
  bool json = false;
  bool all = false;
  bool schedule = false;
  ScheduleView view;
};

// Prints an error, if there is one, and returns the exit code.
int answer(const absl::Status& status) {
  if (status.ok()) return kSuccess;
  complain(std::string(status.message()));
  return kUserError;
}

absl::Status showScheduleOf(const plan::Plan& plan, ScheduleView& view) {
  auto schedule = plan::ScheduleOf(plan, /*trains=*/true);
  if (!schedule.ok()) return schedule.status();
  return showSchedule(*schedule, view);
}

// Shows the schedule that the artifact was compiled with. Files are untrusted,
// so the schedule is checked again.
absl::Status showScheduleOf(const program::Artifact& artifact,
                            const InspectCommand& command) {
  const auto* text = artifact.program().schedule();
  if (text == nullptr || text->size() == 0)
    return absl::InvalidArgumentError(
        "--schedule: expected the program of a pipeline, found one whose "
        "devices all run the same; divide D when compiling it, as in --mesh "
        "pipe=2 --shard D=pipe");
  auto schedule =
      core::ReadScheduleCsv(text->str(), command.model.model + ": schedule");
  if (!schedule.ok()) return schedule.status();
  absl::Status checked = core::CheckSchedule(*schedule);
  if (!checked.ok()) return checked;
  return showSchedule(*schedule, command.view);
}

int inspectArtifactFile(const InspectCommand& command) {
  auto artifact = program::Artifact::Open(command.model.model);
  if (!artifact.ok()) return answer(artifact.status());
  if (command.schedule) return answer(showScheduleOf(*artifact, command));
  show(inspectArtifact(*artifact), command.json,
       command.all ? printInspection : printPage);
  return kSuccess;
}

int inspectPlanFile(InspectCommand& command) {
  auto plan = plan::ReadPlan(command.model.model);
  if (!plan.ok()) return answer(plan.status());
  if (command.schedule) return answer(showScheduleOf(*plan, command.view));
  show(inspectPlan(*plan), command.json, printPlan);
  return kSuccess;
}

int run(InspectCommand& command) {
  double transfer = 0;
  core::StageCost cost;
  if (!command.model.finish() ||
      !take(parseStageCost(command.view.costs, transfer), cost))
    return kUsageError;
  command.view.json = command.json;
  if (std::string wrong = refuseFolderOfSteps(command.model.model);
      !wrong.empty()) {
    complain(wrong);
    return kUserError;
  }
  const llvm::StringRef path = command.model.model;
  if (path.ends_with(".yaml") || path.ends_with(".yml"))
    return inspectPlanFile(command);
  if (path.ends_with(".partita")) return inspectArtifactFile(command);
  if (command.schedule)
    return answer(absl::InvalidArgumentError(
        "--schedule: expected a plan (.yaml) or an artifact (.partita), which "
        "say when the stages of a "
        "pipeline compute, found " +
        path.str()));
  Session session;
  auto module = command.model.import(session);
  if (!module) return kUserError;
  llvm::json::Value facts = inspectModel(*module);
  auto dims = inspectDims(*module, llvm::join(command.names, ";"));
  if (mlir::failed(dims)) return kUserError;
  if (command.json) (*facts.getAsObject())["dimensions"] = toJson(*dims);
  show(facts, command.json, printInspection);
  if (!command.json) printDims(*dims, results());
  return kSuccess;
}

}  // namespace

Command addInspect(CLI::App& app) {
  auto state = std::make_shared<InspectCommand>();
  CLI::App* command =
      app.add_subcommand("inspect", "Describe a model, an artifact or a plan");
  state->model.add(command, std::string(kAnyModel) +
                                ", an artifact (.partita), or a plan (.yaml)");
  command
      ->add_option("--name", state->names,
                   "Name a parameter's dimension that is not recognized, e.g. "
                   "\"*.mlp.c_fc.weight:1=M\"")
      ->allow_extra_args(false);
  command->add_flag("--all", state->all,
                    "List all facts of an artifact: every kernel and function, "
                    "the CPU features that it needs, times of compiling");
  CLI::Option* schedule = command->add_flag(
      "--schedule", state->schedule,
      "Draw the timetable of a pipeline, from a plan or an artifact");
  command
      ->add_option("--costs", state->view.costs,
                   "Relative times of a forward (F), a backward (B), its "
                   "gradients of inputs (I) and weights (W), and a transfer "
                   "(T); default: F=1,B=2,I=1,W=1,T=0")
      ->needs(schedule);
  command->add_option("-o", state->view.output, "Draw it as SVG into this file")
      ->needs(schedule);
  addJson(state->json, command);
  command->footer(
      "Examples:\n  partita inspect model.partita --json\n  partita inspect "
      "plan.yaml --schedule -o schedule.svg");
  return {command, [state] { return run(*state); }};
}

}  // namespace partita::driver
