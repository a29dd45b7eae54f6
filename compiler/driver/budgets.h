// What a plan allows a divided model to send.
#ifndef PARTITA_COMPILER_DRIVER_BUDGETS_H_
#define PARTITA_COMPILER_DRIVER_BUDGETS_H_

#include "compiler/driver/run_phase.h"
#include "compiler/driver/train_options.h"
#include "compiler/plan/plan.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::driver {

// Whether each of the partitioned `programs`, one for each rank of a pipeline,
// sends at most what the plan's budgets allow; else, of the first that does
// not, a diagnostic per budget that names the collectives, why they are there
// and which part of the plan each is gone without. `simplified` is the module
// before it was divided, for training where `train` is given.
mlir::LogicalResult checkBudgets(llvm::ArrayRef<mlir::ModuleOp> programs,
                                 mlir::ModuleOp simplified,
                                 const plan::Plan& plan,
                                 const TrainOptions* train, Fault& fault);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_BUDGETS_H_
