// States that carry values of a step to later steps.
#ifndef PARTITA_COMPILER_PIPELINE_DELAYED_STATES_H_
#define PARTITA_COMPILER_PIPELINE_DELAYED_STATES_H_

#include <cstdint>
#include <string>
#include <utility>

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::pipeline {

// Adds states to a step. Their names begin with kDelayedPrefix (placement.h);
// their first values are zeros. Errors: none.
class DelayedStates {
 public:
  // `main` must outlive this object. It does not verify between add() and
  // declare().
  explicit DelayedStates(mlir::func::FuncOp main) : main_(main) {}

  // Returns the state's value at the beginning of the step.
  mlir::Value add(mlir::Type type, const std::string& name);
  // Makes `value` the state's next value.
  void update(const std::string& name, mlir::Value value);

  // Returns the value `steps` steps earlier, as states of the stage that reads
  // it first.
  mlir::Value delayed(mlir::Value value, int64_t steps, int64_t stage);
  // Returns the state that delayed() added; null if there is none.
  mlir::Value lookup(mlir::Value value, int64_t steps) const {
    return delayed_.lookup({value, steps});
  }

  // Declares the arguments and results of all states. Called once, at the end.
  void declare();

 private:
  mlir::func::FuncOp main_;
  llvm::DenseMap<std::pair<mlir::Value, int64_t>, mlir::Value> delayed_;
  llvm::SmallVector<mlir::DictionaryAttr> arguments_, results_;
  llvm::SmallVector<mlir::Value> returned_;  // parallel to results_
};

}  // namespace partita::pipeline

#endif  // PARTITA_COMPILER_PIPELINE_DELAYED_STATES_H_
