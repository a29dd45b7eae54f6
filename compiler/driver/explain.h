// Why a divided model communicates, and what would change that.
#ifndef PARTITA_COMPILER_DRIVER_EXPLAIN_H_
#define PARTITA_COMPILER_DRIVER_EXPLAIN_H_

#include "compiler/plan/plan.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::driver {

// Divides a copy of the imported `module` as `plan` says and lists every
// collective: kind, axes, where, bytes, how often, why, and the last entry of
// the plan without which it is not there (tried, each, on a copy). Fails after
// diagnostics where the model cannot be divided.
mlir::FailureOr<llvm::json::Value> explainPlan(mlir::ModuleOp module,
                                               const plan::Plan& plan);
void printExplanation(const llvm::json::Value& explanation,
                      llvm::raw_ostream& stream);

// Whether a partitioned module sends at most what the plan's budgets allow;
// else a diagnostic that names the collectives, and why they are there.
mlir::LogicalResult checkBudgets(mlir::ModuleOp module, const plan::Plan& plan);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_EXPLAIN_H_
