// Whether the divided model is still the model.
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
  bool full = false;                // all layers, however long that takes
  TrainOptions train;  // a step of training; without an optimizer: inference
  // Called with the divided module before it runs; null: not. What tests break
  // must be found.
  std::function<void(mlir::ModuleOp)> breaking;
  // Where to show what is being run, from time to time; null: nowhere.
  llvm::raw_ostream* progress = nullptr;
};

// Runs the imported `module` as it is, then simplified with its factors
// exposed, then divided as `plan` says, as one device's program for all
// devices, with the slow references of all operations. Inputs are made up, and
// so are weights that no file holds.
// - The results of the second must be those of the first to 1e-4 of the largest
//   value: simplifying computes the same in another order.
// - Every operation of the third must give what that of the second gives, to
//   1e-5; 16 roundings, twice that to the first, where values are f16 or bf16.
//   Rows beyond a dimension's end hold NaN, so use of them shows.
// Values that are what is left of larger ones that cancelled are as exact as
// those. Of a step of training results are the loss, the gradient of each
// parameter and its value after the step; the imported model's are those of its
// own operations, as they were imported (not compared where batch norms take
// the statistics of each of several microbatches).
// Where that would take minutes, all but two of the layers that repeat, one
// feeding the next, are left out first, unless `full` or the plan speaks of
// them apart. Widths are never changed; sizes are those of the import.
//
// "equal" says whether all agree; "first" which operation, in which layer,
// differs first. Fails after diagnostics where the model cannot be divided or
// run; `fault`, where given, says whose fault it is.
mlir::FailureOr<llvm::json::Value> verifyPlan(mlir::ModuleOp module,
                                              const plan::Plan& plan,
                                              const VerifyOptions& options,
                                              Fault* fault = nullptr);
void printVerification(const llvm::json::Value& verification,
                       llvm::raw_ostream& stream);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_VERIFY_VERIFY_H_
