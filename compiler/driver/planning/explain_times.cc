// The same compilation and simulation as for `partita plan`.
#include "compiler/driver/planning/explain_times.h"

#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "compiler/driver/compile.h"
#include "compiler/driver/planning/price_plan.h"
#include "compiler/simulator/price.h"
#include "llvm/Support/FormatVariadic.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/OwningOpRef.h"
#include "runtime/program/program_generated.h"

namespace partita::driver {
namespace {

using llvm::json::Array;
using llvm::json::Object;

// The program without code; empty with `problem` if it does not compile.
std::string programOf(mlir::ModuleOp module, const CompileOptions& options,
                      std::string& problem) {
  // Explaining the plan has already printed its warnings.
  const mlir::ScopedDiagnosticHandler quiet(
      module.getContext(), [&](mlir::Diagnostic& diagnostic) {
        if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error)
          problem = diagnostic.str();
        return mlir::success();
      });
  Fault fault = Fault::kUser;
  Compilation model(mlir::OwningOpRef<mlir::ModuleOp>(module.clone()), options,
                    Milestone::kImported, /*machine_code=*/false);
  if (mlir::failed(model.runTo(Milestone::kSimplified, fault))) return "";
  auto made = compileProgram(model, /*machine_code=*/false, fault);
  if (mlir::failed(made)) return "";
  auto parts = artifactOf(**made);
  return mlir::failed(parts) ? "" : std::move(parts->program);
}

Array collectivesOf(const simulator::Simulation& simulation) {
  std::map<std::tuple<std::string, std::string, std::string>, double> seconds;
  for (const simulator::OperationTotal& total : simulation.operations)
    if (total.group > 1)
      seconds[{total.kind, total.axes, total.why}] += total.seconds;
  Array rows;
  for (const auto& [key, sum] : seconds)
    rows.push_back(Object{{"kind", std::get<0>(key)},
                          {"axes", std::get<1>(key)},
                          {"why", std::get<2>(key)},
                          {"seconds", sum}});
  return rows;
}

}  // namespace

absl::Status addTimes(mlir::ModuleOp module, const plan::Plan& plan,
                      const TrainOptions* train,
                      const planner::Cluster& cluster, Object& facts) {
  CompileOptions options = optionsToJudge(plan, train);
  options.target = targetOf(cluster.device);
  // A plan over its limit can be explained, too.
  options.plan->memory.reset();
  options.plan->fields.erase("memory");
  std::string problem = prepareOptions(options);
  const std::string text =
      problem.empty() ? programOf(module, options, problem) : "";
  if (text.empty())
    return absl::InvalidArgumentError(
        "--cluster: expected a model that compiles for " + options.target +
        ", to predict times, found: " + problem);
  const program::Program& program =
      *flatbuffers::GetRoot<program::Program>(text.data());
  absl::StatusOr<simulator::StepPrice> price =
      simulator::PriceStep(program, cluster);
  if (!price.ok()) return price.status();
  facts["predicted"] =
      Object{{"cluster", cluster.name},
             {"step_seconds", price->simulation.step},
             {"collectives", collectivesOf(price->simulation)}};
  return absl::OkStatus();
}

}  // namespace partita::driver
