// Whether the divided model is still the model.
#ifndef PARTITA_COMPILER_DRIVER_VERIFY_H_
#define PARTITA_COMPILER_DRIVER_VERIFY_H_

#include "compiler/plan/plan.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::driver {

// Runs the imported `module` undivided and, as one device's program for all
// devices, divided, with the slow references of all operations, on made-up
// inputs and weights, and compares every operation's value in both. Rows beyond
// a dimension's end hold NaN, so use of them shows. Meant for small shapes:
// give small sizes at import. "equal" says whether all agree to 1e-5 of each
// value's largest element; "first" which operation differs first. Fails after
// diagnostics where the model cannot be divided or run.
mlir::FailureOr<llvm::json::Value> verifyPlan(mlir::ModuleOp module,
                                              const plan::Plan& plan);
void printVerification(const llvm::json::Value& verification,
                       llvm::raw_ostream& stream);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_VERIFY_H_
