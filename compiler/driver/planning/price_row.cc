// Turns a row into a model and a plan, and prices them.
#include "compiler/driver/planning/price_row.h"

#include <map>
#include <tuple>

#include "compiler/driver/planning/model_of_row.h"
#include "compiler/driver/planning/price_plan.h"
#include "compiler/planner/search/write_plan.h"
#include "compiler/simulator/memory.h"
#include "llvm/Support/FormatVariadic.h"
#include "mlir/IR/Diagnostics.h"
#include "runtime/program/types.h"

namespace partita::driver {
namespace {

using planner::Prediction;

// "all_reduce tensor 4194304 x 96; ...": bytes, and calls per step and device.
std::string trafficOf(const simulator::Simulation& simulation) {
  std::map<std::tuple<std::string, std::string, int64_t>, double> calls;
  for (const simulator::OperationTotal& total : simulation.operations)
    if ((total.group > 1 && total.kind != "all_slice") || total.kind == "send")
      calls[{total.kind, total.axes, total.bytes}] += total.calls;
  std::string text;
  for (const auto& [what, count] : calls)
    text += llvm::formatv("{0}{1} {2} {3} x {4}", text.empty() ? "" : "; ",
                          std::get<0>(what), std::get<1>(what),
                          std::get<2>(what), count)
                .str();
  return text;
}

planner::MemoryUse memoryOf(const program::Program& program, int entry) {
  const simulator::DeviceMemory memory = simulator::MemoryOf(program, entry);
  planner::MemoryUse use;
  use.parameters = static_cast<double>(memory.parameters + memory.derived);
  use.optimizer = static_cast<double>(memory.states);
  use.activations = static_cast<double>(memory.arena + memory.ports);
  use.libraries = static_cast<double>(memory.reserved);
  use.host = static_cast<double>(memory.host);
  return use;
}

Prediction predictionOf(const PricedPlan& plan) {
  Prediction prediction;
  const simulator::Simulation& simulation = plan.price.simulation;
  prediction.step = simulation.step;
  prediction.bubble = simulation.Bubble() * simulation.step;
  prediction.data = simulation.Exposed() * simulation.step;
  prediction.products = simulation.step - prediction.bubble - prediction.data;
  prediction.traffic = trafficOf(simulation);
  prediction.fits = plan.fits;
  prediction.bound = !plan.fits                                ? "memory"
                     : prediction.bubble > prediction.products ? "bubble"
                     : prediction.data > prediction.products   ? "collectives"
                                                               : "compute";
  const auto& program =
      *flatbuffers::GetRoot<program::Program>(plan.program.data());
  const int entries = static_cast<int>(program.entries()->size());
  for (int entry = 0; entry < entries; ++entry)
    if (const planner::MemoryUse use = memoryOf(program, entry);
        use.total() > prediction.memory.total())
      prediction.memory = use;
  prediction.last_rank_memory = memoryOf(program, entries - 1).total();
  return prediction;
}

}  // namespace

absl::StatusOr<Prediction> RowPricer::price(const planner::SweepRow& row) {
  const planner::Architecture& architecture = row.architecture;
  if (absl::Status status = planner::CheckDivision(architecture, row.division);
      !status.ok())
    return status;
  if (architecture.frozen)
    return absl::InvalidArgumentError(
        "task: expected training of all weights, found adapters");
  std::string problem;
  mlir::ScopedDiagnosticHandler kept(
      session_.context(), [&](mlir::Diagnostic& diagnostic) {
        if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error)
          problem = diagnostic.str();
        return mlir::success();
      });
  auto module =
      modelOfRow(architecture, row.division.batch, session_.context());
  if (!module) return absl::InvalidArgumentError(problem);
  absl::StatusOr<plan::Plan> plan =
      planner::PlanOf(architecture, row.division, {"*.", architecture.seq > 1});
  if (!plan.ok()) return plan.status();
  CompileOptions options;
  options.target = targetOf(row.cluster.device);
  options.train.optimizer = "adamw";
  PlanPricer pricer(*module, options, row.cluster,
                    static_cast<int64_t>(row.cluster.device.room()));
  const PricedPlan* priced = pricer.price(*plan);
  if (priced == nullptr) return absl::InvalidArgumentError(pricer.problem());
  return predictionOf(*priced);
}

}  // namespace partita::driver
