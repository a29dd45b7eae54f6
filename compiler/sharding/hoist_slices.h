// Packed projections: replaces slices of a product by products with slices of
// the parameter.
#ifndef PARTITA_COMPILER_SHARDING_HOIST_SLICES_H_
#define PARTITA_COMPILER_SHARDING_HOIST_SLICES_H_

#include "llvm/ADT/DenseSet.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::sharding {

// True if a block argument holds stored data at every call.
using IsStored = llvm::function_ref<bool(mlir::BlockArgument)>;

// Moves slices up to stored arguments. Applies to values that are used only by
// slices of one dimension, if all operations between the arguments and the
// value allow it. Adds to `views` the reshapes of arguments that give the parts
// a dimension of their own. Returns the number of slices moved.
int64_t hoistSlices(mlir::func::FuncOp function, IsStored is_stored,
                    llvm::DenseSet<mlir::Operation*>& views);

}  // namespace partita::sharding

#endif  // PARTITA_COMPILER_SHARDING_HOIST_SLICES_H_
