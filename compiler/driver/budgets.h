// What a plan allows a divided model to send.
#ifndef PARTITA_COMPILER_DRIVER_BUDGETS_H_
#define PARTITA_COMPILER_DRIVER_BUDGETS_H_

#include "compiler/plan/plan.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::driver {

// Whether a partitioned module sends at most what the plan's budgets allow;
// else a diagnostic that names the collectives, and why they are there.
mlir::LogicalResult checkBudgets(mlir::ModuleOp module, const plan::Plan& plan);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_BUDGETS_H_
