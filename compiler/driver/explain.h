// Explains why a divided model communicates and pads, and what would change it.
#ifndef PARTITA_COMPILER_DRIVER_EXPLAIN_H_
#define PARTITA_COMPILER_DRIVER_EXPLAIN_H_

#include "compiler/driver/run_phase.h"
#include "compiler/driver/train_options.h"
#include "compiler/plan/plan.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::driver {

// Divides a copy of the imported `module` by `plan`, as a training step if
// `train` is given, and lists
// - "collectives": kind, axes, place, bytes, count, reason;
// - "overlapped": collectives that run beside other work;
// - "paddings": dimensions that do not divide evenly: rows in total and per
//   device, bytes of the rows beyond the end on the device with the most, the
//   annotation that causes the padding ("why"), and sizes that need none
//   ("fits").
// Collectives and paddings name the smallest part of the plan "without" which
// they are gone: the last such override or entry, each tried on a copy; empty
// if no single part suffices. Fails after diagnostics if the model cannot be
// divided; `fault`, if given, says whose fault it is.
mlir::FailureOr<llvm::json::Value> explainPlan(mlir::ModuleOp module,
                                               const plan::Plan& plan,
                                               const TrainOptions* train,
                                               Fault* fault = nullptr);
// Prints a table for people. Rows with the same reason are one entry; the entry
// with the most bytes comes first. Times are printed if `explanation` has
// "predicted" (planning/explain_times.h).
void printExplanation(const llvm::json::Value& explanation,
                      llvm::raw_ostream& stream);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_EXPLAIN_H_
