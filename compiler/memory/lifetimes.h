// Lifetimes of the values of a function.
#ifndef PARTITA_COMPILER_MEMORY_LIFETIMES_H_
#define PARTITA_COMPILER_MEMORY_LIFETIMES_H_

#include "dialects/exec/dialect.h"
#include "llvm/ADT/DenseMap.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::memory {

// The value that owns a value's memory: the viewed value for a view, the
// started collective for an await, and the launch that began to write for a
// launch with `into`.
inline mlir::Value rootOf(mlir::Value value) {
  while (true) {
    if (auto view = value.getDefiningOp<exec::ViewOp>())
      value = view.getInput();
    else if (auto await = value.getDefiningOp<exec::AwaitOp>())
      value = await.getStarted();
    else if (auto launch = value.getDefiningOp<exec::LaunchOp>();
             launch && !launch.getInto().empty())
      value =
          launch.getInto()[llvm::cast<mlir::OpResult>(value).getResultNumber()];
    else
      return value;
  }
}

// Numbers of operations, and the last use of each value or of a view of it.
struct Lifetimes {
  explicit Lifetimes(mlir::func::FuncOp function) {
    for (mlir::Operation& op : function.front()) {
      for (mlir::Value operand : op.getOperands())
        last_use[rootOf(operand)] = steps;
      step[&op] = steps++;
    }
  }
  // The last step that uses a result of the function's operations; the step
  // that computes it if there are no uses.
  int64_t end(mlir::Value value) const {
    auto used = last_use.find(value);
    return used == last_use.end() ? step.lookup(value.getDefiningOp())
                                  : used->second;
  }

  int64_t steps = 0;
  llvm::DenseMap<mlir::Operation*, int64_t> step;
  llvm::DenseMap<mlir::Value, int64_t> last_use;
};

}  // namespace partita::memory

#endif  // PARTITA_COMPILER_MEMORY_LIFETIMES_H_
