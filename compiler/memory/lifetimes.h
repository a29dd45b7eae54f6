// How long the values of a function live.
#ifndef PARTITA_COMPILER_MEMORY_LIFETIMES_H_
#define PARTITA_COMPILER_MEMORY_LIFETIMES_H_

#include "dialects/exec/dialect.h"
#include "llvm/ADT/DenseMap.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::memory {

// What a value's memory belongs to: views lead back to the value they view,
// what is awaited to what was started, a launch with `into` to the launch that
// began to write.
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

// Operations by number, and the last that uses each value or a view of it.
struct Lifetimes {
  explicit Lifetimes(mlir::func::FuncOp function) {
    for (mlir::Operation& op : function.front()) {
      for (mlir::Value operand : op.getOperands())
        last_use[rootOf(operand)] = steps;
      step[&op] = steps++;
    }
  }
  // Of a result of the function's operations.
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
