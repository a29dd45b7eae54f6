// Why a divided model communicates and pads, and what would change that.
#ifndef PARTITA_COMPILER_DRIVER_EXPLAIN_H_
#define PARTITA_COMPILER_DRIVER_EXPLAIN_H_

#include "compiler/driver/run_phase.h"
#include "compiler/driver/train_options.h"
#include "compiler/plan/plan.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::driver {

// Divides a copy of the imported `module` as `plan` says, a step of training
// where `train` is given, and lists
// - "collectives": kind, axes, where, bytes, how often, why;
// - "paddings": dimensions whose sizes do not divide, from how many rows to how
//   many on each device, the bytes of rows beyond the end on the device that
//   has most, the annotation behind it ("why"), and sizes that "fits";
// each with the smallest part of the plan "without" which it is not there: the
// last override or entry (tried, each, on a copy), empty where none alone is.
// Fails after diagnostics where the model cannot be divided; `fault`, where
// given, says whose fault it is.
mlir::FailureOr<llvm::json::Value> explainPlan(mlir::ModuleOp module,
                                               const plan::Plan& plan,
                                               const TrainOptions* train,
                                               Fault* fault = nullptr);
// For people: what has the same reason is one entry.
void printExplanation(const llvm::json::Value& explanation,
                      llvm::raw_ostream& stream);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_EXPLAIN_H_
