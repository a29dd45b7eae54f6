// Cuts a model by the plan's schedule, and names its inputs and outputs.
#include "compiler/driver/cut_model.h"

#include <iterator>

#include "compiler/pipeline/cut.h"
#include "compiler/pipeline/delayed_step.h"
#include "compiler/plan/plan_schedule.h"
#include "compiler/sharding/convert.h"
#include "dialects/nn/dialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"

namespace partita::driver {

using mlir::failure;
using mlir::FailureOr;
using mlir::func::FuncOp;

PortNames namePorts(mlir::ModuleOp module) {
  PortNames names;
  auto main = module.lookupSymbol<FuncOp>("main");
  if (!main) return names;
  mlir::Builder builder(module.getContext());
  for (unsigned i = 0; i < main.getNumArguments(); ++i) {
    auto kind = main.getArgAttrOfType<mlir::StringAttr>(i, nn::kKindAttr);
    if (kind && kind.getValue() != "input") continue;
    if (!main.getArgAttr(i, nn::kNameAttr))
      main.setArgAttr(i, nn::kNameAttr,
                      builder.getStringAttr("input" + std::to_string(i)));
    names.inputs.push_back(
        main.getArgAttrOfType<mlir::StringAttr>(i, nn::kNameAttr).str());
  }
  for (unsigned i = 0; i < main.getNumResults(); ++i) {
    if (main.getResultAttr(i, nn::kUpdatesAttr)) continue;
    if (!main.getResultAttr(i, nn::kNameAttr))
      main.setResultAttr(i, nn::kNameAttr,
                         builder.getStringAttr("output" + std::to_string(i)));
    names.outputs.push_back(
        main.getResultAttrOfType<mlir::StringAttr>(i, nn::kNameAttr).str());
  }
  return names;
}

namespace {

bool hasForwardsInOrder(const core::Schedule& schedule) {
  std::vector<int> next(schedule.stages, 0);
  for (const std::vector<core::Cell>& cells : schedule.cells)
    for (const core::Cell& cell : cells)
      if (cell.work == core::Work::kForward &&
          cell.microbatch != next[cell.stage]++)
        return false;
  return true;
}

}  // namespace

FailureOr<Programs> cutModel(mlir::ModuleOp module, const plan::Plan& plan,
                             const TrainOptions* train, Fault& fault) {
  auto schedule = plan::ScheduleOf(plan, train != nullptr);
  if (!schedule.ok())
    return mlir::emitError(mlir::UnknownLoc::get(module.getContext()))
           << std::string(schedule.status().message());
  if (!schedule->flushes)
    if (auto weights = pipeline::delayedWeights(*schedule); !weights.ok()) {
      auto field = plan.fields.find("schedule");
      return mlir::emitError(mlir::UnknownLoc::get(module.getContext()))
             << (field == plan.fields.end()
                     ? "--schedule"
                     : plan::Where(plan, field->second) + ": schedule")
             << ": " << std::string(weights.status().message());
    }
  const bool in_order = hasForwardsInOrder(*schedule);
  auto cut = [&] {
    // For another order, the error below explains it in terms of the table.
    mlir::ScopedDiagnosticHandler quiet(
        module.getContext(),
        [&](mlir::Diagnostic&) { return mlir::success(!in_order); });
    return pipeline::cutStages(
        module,
        sharding::axesAttr(module.getContext(), plan::DepthAxes(plan),
                           plan.mesh),
        *schedule);
  }();
  if (mlir::failed(cut)) {
    if (in_order) return reportBug(module, "cut", fault);
    return mlir::emitError(mlir::UnknownLoc::get(module.getContext()))
           << "schedule: expected each stage's forwards in the order of the "
              "microbatches, since this model passes something from one to the "
              "next, as batch norms do their statistics; found another order; "
              "sort them in the table";
  }
  return Programs(std::make_move_iterator(cut->begin()),
                  std::make_move_iterator(cut->end()));
}

}  // namespace partita::driver
