// Finds values of a model that depend on stored tensors alone, and so are equal
// in every run.
#ifndef PARTITA_COMPILER_SIMPLIFY_STORED_VALUES_H_
#define PARTITA_COMPILER_SIMPLIFY_STORED_VALUES_H_

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/SymbolTable.h"

namespace partita::simplify {

// A function and all functions that it calls, callers before callees, with the
// calls of each.
struct CallGraph {
  llvm::SetVector<mlir::func::FuncOp> functions;
  llvm::DenseMap<mlir::func::FuncOp, mlir::SmallVector<mlir::func::CallOp>>
      calls;

  explicit CallGraph(mlir::func::FuncOp root);

  // True if a function has no uses other than these calls, so its signature may
  // change.
  bool isOnlyCalled(mlir::func::FuncOp function) const;

 private:
  void visit(mlir::func::FuncOp function, const mlir::SymbolTable& symbols,
             llvm::SetVector<mlir::func::FuncOp>& finished);

  llvm::DenseMap<mlir::func::FuncOp, size_t> uses_;  // in the whole module
};

// Stored values are: arguments of @main with data (nn.source) or derived from
// such data, constants, results of operations on stored values without side
// effects and regions, and arguments of functions that receive stored values at
// every call.
class StoredValues {
 public:
  StoredValues(mlir::func::FuncOp main, const CallGraph& graph);

  bool contains(mlir::Value value) const { return stored_.contains(value); }
  void insert(mlir::Value value) { stored_.insert(value); }

 private:
  void visit(mlir::func::FuncOp function);

  llvm::DenseSet<mlir::Value> stored_;
};

// Erases unused operations, and operations that only these used.
void eraseDeadOperations(mlir::func::FuncOp function);

// True if an argument of @main holds data that exists before the first run.
bool isStoredArgument(mlir::func::FuncOp main, unsigned argument);

}  // namespace partita::simplify

#endif  // PARTITA_COMPILER_SIMPLIFY_STORED_VALUES_H_
