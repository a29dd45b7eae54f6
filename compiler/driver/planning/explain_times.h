// Adds predicted times to the explanation of a plan.
#ifndef PARTITA_COMPILER_DRIVER_PLANNING_EXPLAIN_TIMES_H_
#define PARTITA_COMPILER_DRIVER_PLANNING_EXPLAIN_TIMES_H_

#include "absl/status/status.h"
#include "compiler/driver/train_options.h"
#include "compiler/plan/plan.h"
#include "compiler/planner/cluster/cluster.h"
#include "llvm/Support/JSON.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::driver {

// Compiles a copy of the imported `module` under `plan` without machine code,
// simulates it on `cluster`, and adds "predicted" to `facts`, which explainPlan
// returned: the cluster, the seconds of a step, and for each kind, axes and
// reason the seconds that devices do nothing but communicate (mean over
// devices). Refuses a cluster with too few devices, and a program that does not
// compile.
absl::Status addTimes(mlir::ModuleOp module, const plan::Plan& plan,
                      const TrainOptions* train,
                      const planner::Cluster& cluster,
                      llvm::json::Object& facts);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_PLANNING_EXPLAIN_TIMES_H_
