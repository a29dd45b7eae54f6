// Parameters take the shape in which their factors stand apart.
#ifndef PARTITA_COMPILER_SHARDING_VIEW_PARAMETERS_H_
#define PARTITA_COMPILER_SHARDING_VIEW_PARAMETERS_H_

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SmallVector.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::sharding {

// Where the arguments of functions come from: for each private function that
// is called only, its calls.
class Callers {
 public:
  explicit Callers(mlir::ModuleOp module);

  // What an argument receives at its calls; empty for arguments of @main and
  // where not all uses of the function are calls.
  llvm::SmallVector<mlir::Value> valuesOf(mlir::BlockArgument argument) const;
  // Whether it holds stored data (nn.source) at every call.
  bool isStored(mlir::BlockArgument argument) const;

 private:
  llvm::DenseMap<mlir::Operation*, llvm::SmallVector<mlir::func::CallOp>>
      calls_;
};

// Gives stored arguments of @main the type of the reshapes in `views`, where
// all uses of them, through calls, are such reshapes to one type. The data is
// the same bytes in the same order, and the type that it had stays beside it
// (kViewOfAttr). Returns how many arguments of @main changed.
int64_t viewParameters(mlir::ModuleOp module,
                       const llvm::DenseSet<mlir::Operation*>& views);

}  // namespace partita::sharding

#endif  // PARTITA_COMPILER_SHARDING_VIEW_PARAMETERS_H_
