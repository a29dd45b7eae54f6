// Measures memory in a trial of the phases between stages and shardings.
#include "compiler/driver/stage_memory.h"

#include <algorithm>

#include "compiler/core/schedule.h"
#include "compiler/driver/compilation.h"
#include "compiler/plan/plan_schedule.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/OwningOpRef.h"

namespace partita::driver {
namespace {

mlir::FailureOr<pipeline::KeptBytes> measure(mlir::ModuleOp module, int parts,
                                             const CompileOptions& options) {
  // Diagnostics are hidden, since the phases themselves report them later.
  mlir::ScopedDiagnosticHandler quiet(
      module.getContext(), [](mlir::Diagnostic&) { return mlir::success(); });
  Compilation trial(mlir::OwningOpRef<mlir::ModuleOp>(module.clone()), options,
                    Milestone::kStaged, /*machine_code=*/false);
  if (mlir::failed(trial.runTo(Milestone::kDivided))) return mlir::failure();
  return pipeline::keptBytes(
      trial.module(), parts,
      options.plan->offload == plan::Offload::kOptimizer);
}

// The largest number of stages on one rank.
int stagesPerRank(const core::Schedule& schedule) {
  std::vector<int> count(schedule.ranks());
  for (int rank : schedule.rank_of_stage) ++count[rank];
  return *std::max_element(count.begin(), count.end());
}

}  // namespace

pipeline::StageMemory stageMemory(const plan::Plan& plan,
                                  const TrainOptions* train) {
  pipeline::StageMemory memory;
  auto schedule = plan::ScheduleOf(plan, train != nullptr);
  // Cutting reports errors in the schedule.
  if (!plan.memory || !plan.stages.empty() || !schedule.ok()) return memory;
  memory.limits.memory =
      static_cast<double>(*plan.memory) / stagesPerRank(*schedule);
  memory.limits.in_flight = core::PeakInFlight(*schedule);
  const std::vector<int> versions = core::PeakVersions(*schedule);
  memory.versions = *std::max_element(versions.begin(), versions.end());
  // The trial has no stages yet, so entries of stages and D are left out.
  CompileOptions options = optionsToJudge(plan, train);
  llvm::erase_if(options.plan->shard, [](const plan::Entry& entry) {
    return !entry.stages.empty();
  });
  for (plan::Entry& entry : options.plan->shard)
    llvm::erase_if(entry.dimensions, [](const plan::ShardedDimension& each) {
      return each.dimension == "D";
    });
  memory.measure = [options](mlir::ModuleOp module, int parts) {
    return measure(module, parts, options);
  };
  return memory;
}

}  // namespace partita::driver
