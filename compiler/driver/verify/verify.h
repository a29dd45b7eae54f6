// Verifies that a divided model computes the same as the model.
#ifndef PARTITA_COMPILER_DRIVER_VERIFY_VERIFY_H_
#define PARTITA_COMPILER_DRIVER_VERIFY_VERIFY_H_

#include <functional>
#include <string>

#include "compiler/driver/run_phase.h"
#include "compiler/driver/train_options.h"
#include "compiler/plan/plan.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::driver {

struct VerifyOptions {
  std::string source_folder = ".";  // relative paths of weights are relative to
  bool full = false;                // all layers, even if that takes long
  TrainOptions train;  // a step of training; without an optimizer: inference
  // Called with the divided module before it runs; may be null. Tests break the
  // module here, which must be found.
  std::function<void(mlir::ModuleOp)> breaking;
  // Receives occasional progress messages; null: none.
  llvm::raw_ostream* progress = nullptr;
};

// Runs the imported `module` as it is, then simplified with its factors
// exposed, then divided by `plan` as one program for all devices, with the slow
// references of all operations. Inputs are made up, and so are weights that are
// in no file.
// - The results of the second run must equal the results of the first to 1e-4
//   of the largest value: simplifying computes the same in another order.
// - Every operation of the third run must equal that of the second to 1e-5.
//   With f16 or bf16 values, the tolerance is 16 roundings, and twice that in
//   the comparison with the first run. Rows beyond a dimension's end hold NaN,
//   so that uses of them show.
// If larger values cancel, the small value that is left is only as exact as
// they were. The results of a training step are the loss, and the gradient and
// new value of each parameter. The imported model computes them with its own
// operations, as imported; they are not compared if batch norms use the
// statistics of each of several microbatches.
// If this would take minutes, all but two of the repeated layers that feed one
// another are removed first, unless `full` is set or the plan treats them
// differently. Widths, and the sizes of the import, are never changed.
//
// "equal" says whether all agree; "first" names the first operation that
// differs, and its layer. Fails after diagnostics if the model cannot be
// divided or run; `fault`, if given, says whose fault it is.
mlir::FailureOr<llvm::json::Value> verifyPlan(mlir::ModuleOp module,
                                              const plan::Plan& plan,
                                              const VerifyOptions& options,
                                              Fault* fault = nullptr);
void printVerification(const llvm::json::Value& verification,
                       llvm::raw_ostream& stream);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_VERIFY_VERIFY_H_
