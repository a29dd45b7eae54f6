// Models that many plans share, compiled to the point where the plans differ:
// the simplified model, and the whole training step with named dimensions.
#ifndef PARTITA_COMPILER_DRIVER_PLANNING_STEP_CACHE_H_
#define PARTITA_COMPILER_DRIVER_PLANNING_STEP_CACHE_H_

#include <functional>
#include <map>
#include <string>

#include "compiler/driver/compile_options.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace partita::driver {

class StepCache {
 public:
  using Import = std::function<mlir::OwningOpRef<mlir::ModuleOp>()>;

  // `import` makes the model as imported for training, or null.
  explicit StepCache(Import import) : import_(std::move(import)) {}

  // Copies of the model at Milestone::kSimplified and kStep, under a plan. Null
  // after diagnostics.
  mlir::OwningOpRef<mlir::ModuleOp> simplified(const CompileOptions& options);
  // Requires !dependsOnPlan(options).
  mlir::OwningOpRef<mlir::ModuleOp> named(const CompileOptions& options);

  // True if the step before division depends on more of the plan than
  // microbatches, precision, recomputation and names: on stages or budgets.
  static bool dependsOnPlan(const CompileOptions& options);

 private:
  const Import import_;
  // By the text of the plan's fields read so far.
  std::map<std::string, mlir::OwningOpRef<mlir::ModuleOp>> simplified_, named_;
};

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_PLANNING_STEP_CACHE_H_
