// Which values of a model depend on stored tensors alone, and so are the same
// at every run.
#ifndef PARTITA_COMPILER_SIMPLIFY_STORED_VALUES_H_
#define PARTITA_COMPILER_SIMPLIFY_STORED_VALUES_H_

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/SymbolTable.h"

namespace partita::simplify {

// A function and what it calls, callers before callees, with the calls of each.
struct CallGraph {
  llvm::SetVector<mlir::func::FuncOp> functions;
  llvm::DenseMap<mlir::func::FuncOp, mlir::SmallVector<mlir::func::CallOp>>
      calls;

  explicit CallGraph(mlir::func::FuncOp root);

  // Whether the calls above are all uses that a function has or may have: then
  // its signature may change.
  bool isOnlyCalled(mlir::func::FuncOp function) const;

 private:
  void visit(mlir::func::FuncOp function, const mlir::SymbolTable& symbols,
             llvm::SetVector<mlir::func::FuncOp>& finished);

  llvm::DenseMap<mlir::func::FuncOp, size_t> uses_;  // in the whole module
};

// Stored are: arguments of @main with data (nn.source) or derived from such,
// constants, results of operations without side effects and regions on stored
// values, and arguments of functions that receive stored values at every call.
class StoredValues {
 public:
  StoredValues(mlir::func::FuncOp main, const CallGraph& graph);

  bool contains(mlir::Value value) const { return stored_.contains(value); }
  void insert(mlir::Value value) { stored_.insert(value); }

 private:
  void visit(mlir::func::FuncOp function);

  llvm::DenseSet<mlir::Value> stored_;
};

// Erases what nothing uses, and what only that used.
void eraseDeadOperations(mlir::func::FuncOp function);

// Whether an argument of @main holds data that is there before the first run.
bool isStoredArgument(mlir::func::FuncOp main, unsigned argument);

}  // namespace partita::simplify

#endif  // PARTITA_COMPILER_SIMPLIFY_STORED_VALUES_H_
