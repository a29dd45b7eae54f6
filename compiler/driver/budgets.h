// Checks the bytes that a divided model sends against the plan's budgets.
#ifndef PARTITA_COMPILER_DRIVER_BUDGETS_H_
#define PARTITA_COMPILER_DRIVER_BUDGETS_H_

#include "compiler/driver/run_phase.h"
#include "compiler/driver/train_options.h"
#include "compiler/plan/plan.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::driver {

// Checks that each of the partitioned `programs`, one per pipeline rank, sends
// at most the bytes that the plan's budgets allow. Fails at the first program
// that does not, with one diagnostic per exceeded budget: it names the
// collectives, their reasons, and the part of the plan without which each would
// be gone. `simplified` is the module before division. `train` is null for
// inference.
mlir::LogicalResult checkBudgets(llvm::ArrayRef<mlir::ModuleOp> programs,
                                 mlir::ModuleOp simplified,
                                 const plan::Plan& plan,
                                 const TrainOptions* train, Fault& fault);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_BUDGETS_H_
