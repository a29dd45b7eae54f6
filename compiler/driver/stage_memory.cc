// A trial of the phases between stages and shardings.
#include "compiler/driver/stage_memory.h"

#include <algorithm>

#include "compiler/driver/model_phases.h"
#include "compiler/sharding/apply_plan.h"
#include "compiler/sharding/passes.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/OwningOpRef.h"

namespace partita::driver {
namespace {

mlir::FailureOr<pipeline::KeptBytes> measure(
    mlir::ModuleOp module, int parts, const plan::Plan& plan,
    const std::optional<TrainOptions>& train) {
  mlir::OwningOpRef<mlir::ModuleOp> trial(module.clone());
  // What is wrong or noteworthy, the phases themselves tell.
  mlir::ScopedDiagnosticHandler quiet(
      module.getContext(), [](mlir::Diagnostic&) { return mlir::success(); });
  mlir::PassManager passes(module.getContext());
  if (train) {
    for (const Phase& phase : trainModel(*train)) phase.build(passes);
    passes.addPass(sharding::createNameDimensionsPass());
  }
  passes.addPass(sharding::createApplyPlanPass(plan));
  if (mlir::failed(passes.run(*trial))) return mlir::failure();
  return pipeline::keptBytes(*trial, parts,
                             plan.offload == plan::Offload::kOptimizer);
}

// The most that one rank runs.
int stagesPerRank(const core::Schedule& schedule) {
  std::vector<int> count(schedule.ranks());
  for (int rank : schedule.rank_of_stage) ++count[rank];
  return *std::max_element(count.begin(), count.end());
}

}  // namespace

pipeline::StageMemory stageMemory(const core::Schedule& schedule,
                                  const plan::Plan& plan,
                                  const TrainOptions* train) {
  pipeline::StageMemory memory;
  if (!plan.memory || !plan.stages.empty()) return memory;
  memory.limits.memory =
      static_cast<double>(*plan.memory) / stagesPerRank(schedule);
  memory.limits.in_flight = core::PeakInFlight(schedule);
  const std::vector<int> versions = core::PeakVersions(schedule);
  memory.versions = *std::max_element(versions.begin(), versions.end());
  std::optional<TrainOptions> options;
  if (train != nullptr) options = *train;
  // What is measured is not in its stages yet.
  plan::Plan everywhere = plan;
  llvm::erase_if(everywhere.shard, [](const plan::Entry& entry) {
    return !entry.stages.empty();
  });
  memory.measure = [plan = std::move(everywhere), options](
                       mlir::ModuleOp module, int parts) {
    return measure(module, parts, plan, options);
  };
  return memory;
}

}  // namespace partita::driver
