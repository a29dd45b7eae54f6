// All mappings share one module, so that a value is the same in each: plans are
// applied until none of them changes an operation.
#include "compiler/driver/planning/prepare_step.h"

#include <set>
#include <string>

#include "compiler/driver/compilation.h"
#include "compiler/driver/planning/mapping_plan.h"
#include "compiler/sharding/apply_plan.h"
#include "compiler/sharding/dims.h"
#include "mlir/IR/Diagnostics.h"

namespace partita::driver {
namespace {

using mlir::failure;
using mlir::FailureOr;
using mlir::LogicalResult;
using mlir::success;

// Size of both axes: planner::StepMapping is for a mesh of 2 x 2.
constexpr int kAxis = 2;

std::set<std::string> namesIn(mlir::ModuleOp module) {
  std::set<std::string> names;
  module.walk([&](mlir::Operation* op) {
    for (mlir::Value result : op->getResults())
      if (auto dims = sharding::dimsOf(result))
        for (const sharding::Dim& dim : *dims)
          for (const char* name : sharding::kDimNames)
            if (dim.isNamed(name)) names.insert(name);
  });
  return names;
}

std::vector<planner::StepMapping> mappingsOf(mlir::ModuleOp module) {
  const std::set<std::string> there = namesIn(module);
  std::vector<planner::StepMapping> mappings(1);
  mappings[0].names = {"B"};
  mappings[0].of_batch = true;
  // Tokens of an image are ordered by rows, so L divides them as H does.
  const std::vector<std::vector<std::string>> offers = {
      {there.count("H") ? "H" : "L"}, {"M", "N", "V"}};
  for (const std::vector<std::string>& offer : offers) {
    planner::StepMapping mapping;
    for (const std::string& name : offer)
      if (there.count(name)) mapping.names.push_back(name);
    if (!mapping.names.empty()) mappings.push_back(std::move(mapping));
  }
  mappings.emplace_back();
  return mappings;
}

int64_t countOperations(mlir::ModuleOp module) {
  int64_t count = 0;
  module.walk([&](mlir::Operation*) { ++count; });
  return count;
}

LogicalResult applyMapping(mlir::ModuleOp module, PreparedStep& step,
                           planner::StepMapping& mapping) {
  absl::StatusOr<plan::Plan> plan = planOf(mapping, kAxis, kAxis);
  if (!plan.ok())
    return module.emitError() << std::string(plan.status().message());
  auto decided =
      sharding::decideShardings(module, *plan, std::move(step.problem));
  if (mlir::failed(decided)) return failure();
  mapping.shardings = std::move(decided->shardings);
  step.problem = std::move(decided->problem);
  return success();
}

}  // namespace

FailureOr<PreparedStep> prepareStep(mlir::ModuleOp module,
                                    plan::Precision precision, Fault& fault) {
  absl::StatusOr<plan::Plan> plan = planOf({}, kAxis, kAxis);
  if (!plan.ok())
    return module.emitError() << std::string(plan.status().message());
  CompileOptions options = optionsToJudge(*plan, /*train=*/nullptr);
  options.precision = precision;
  // sgd has the smallest graph for each parameter. Callers add the states.
  options.train.optimizer = "sgd";
  if (mlir::failed(Compilation(module, options).runTo(Milestone::kStep, fault)))
    return failure();
  // Warnings are hidden, since nobody asked for these mappings.
  mlir::ScopedDiagnosticHandler quiet(
      module.getContext(), [](mlir::Diagnostic& diagnostic) {
        return success(diagnostic.getSeverity() !=
                       mlir::DiagnosticSeverity::Error);
      });
  PreparedStep step;
  step.mappings = mappingsOf(module);
  // Applies mappings in turn until all of them have been applied to the final
  // module. A mapping changes nothing when it is applied again.
  size_t applied = 0;
  for (size_t m = 0; applied < step.mappings.size();
       m = (m + 1) % step.mappings.size()) {
    const int64_t before = countOperations(module);
    if (mlir::failed(applyMapping(module, step, step.mappings[m])))
      return failure();
    applied = countOperations(module) == before ? applied + 1 : 1;
  }
  return step;
}

}  // namespace partita::driver
