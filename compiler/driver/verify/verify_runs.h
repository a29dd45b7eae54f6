// Runs a model with made-up values, on one device or on a whole mesh.
#ifndef PARTITA_COMPILER_DRIVER_VERIFY_VERIFY_RUNS_H_
#define PARTITA_COMPILER_DRIVER_VERIFY_VERIFY_RUNS_H_

#include <chrono>
#include <string>
#include <vector>

#include "compiler/driver/verify/verify_values.h"
#include "compiler/partition/spmd_interpreter.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/Support/raw_ostream.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::driver {

using Clock = std::chrono::steady_clock;
double secondsSince(Clock::time_point start);

class VerifyRuns {
 public:
  // Progress goes to `progress` once per second; null: no progress.
  VerifyRuns(std::string source_folder, llvm::raw_ostream* progress)
      : arguments_(std::move(source_folder)), progress_(progress) {}

  // The results of @main on all devices of `mesh`. `what` names the run in
  // progress messages. Arguments with a sharding are scattered; others are on
  // one device.
  mlir::FailureOr<llvm::SmallVector<partition::Everywhere>> run(
      mlir::ModuleOp module, const core::Mesh& mesh, const std::string& what,
      const partition::Observer& observer);

  // The same for the ranks of a pipeline, which exchange values.
  mlir::FailureOr<llvm::SmallVector<llvm::SmallVector<partition::Everywhere>>>
  runRanks(llvm::ArrayRef<mlir::ModuleOp> programs, const core::Mesh& mesh);

  const ArgumentValues& arguments() const { return arguments_; }
  // The largest magnitude of each argument of the last run; 0 if it is unused.
  llvm::ArrayRef<double> largestArguments() const { return largest_; }

 private:
  llvm::SmallVector<partition::Everywhere> argumentsOf(mlir::func::FuncOp main,
                                                       const core::Mesh& mesh);
  // Adds progress messages to `observer`, which may be empty.
  partition::Observer showing(const std::string& what,
                              const partition::Observer& observer);

  ArgumentValues arguments_;
  std::vector<double> largest_;
  llvm::raw_ostream* progress_;
};

// Operations whose values depend on inputs of the model, not on weights alone.
class InputDependence {
 public:
  explicit InputDependence(mlir::func::FuncOp main);
  bool contains(mlir::Operation* op) const;

 private:
  void follow(mlir::func::FuncOp function);
  void spread(mlir::ValueRange from, mlir::ValueRange to);

  llvm::DenseSet<mlir::Value> dependent_;
};

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_VERIFY_VERIFY_RUNS_H_
