// Reshapes parameters so that each of their factors is a dimension.
#ifndef PARTITA_COMPILER_SHARDING_VIEW_PARAMETERS_H_
#define PARTITA_COMPILER_SHARDING_VIEW_PARAMETERS_H_

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SmallVector.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::sharding {

// The callers of each private function that is used only in calls.
class Callers {
 public:
  explicit Callers(mlir::ModuleOp module);

  // Returns the operands passed to an argument, one per call. Empty for
  // arguments of @main and of functions with uses other than calls.
  llvm::SmallVector<mlir::Value> valuesOf(mlir::BlockArgument argument) const;
  // True if the argument holds stored data (nn.source) at every call.
  bool isStored(mlir::BlockArgument argument) const;

 private:
  llvm::DenseMap<mlir::Operation*, llvm::SmallVector<mlir::func::CallOp>>
      calls_;
};

// Gives stored arguments of @main the result type of the reshapes in `views`,
// if all their uses, through calls, are such reshapes to one type. The bytes
// and their order do not change. The original type is kept in kViewOfAttr.
// Returns the number of arguments of @main that changed.
int64_t viewParameters(mlir::ModuleOp module,
                       const llvm::DenseSet<mlir::Operation*>& views);

}  // namespace partita::sharding

#endif  // PARTITA_COMPILER_SHARDING_VIEW_PARAMETERS_H_
