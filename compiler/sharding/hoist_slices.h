// Packed projections: slices of a product become products with slices of the
// parameter.
#ifndef PARTITA_COMPILER_SHARDING_HOIST_SLICES_H_
#define PARTITA_COMPILER_SHARDING_HOIST_SLICES_H_

#include "llvm/ADT/DenseSet.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::sharding {

// Whether a block argument holds stored data at every call.
using IsStored = llvm::function_ref<bool(mlir::BlockArgument)>;

// Where all that is used of a value are slices of one of its dimensions, and
// what it is computed from lets them pass up to stored arguments, moves them
// there. Adds to `views` the reshapes of arguments that give each part an index
// of its own. Returns how many slices moved.
int64_t hoistSlices(mlir::func::FuncOp function, IsStored is_stored,
                    llvm::DenseSet<mlir::Operation*>& views);

}  // namespace partita::sharding

#endif  // PARTITA_COMPILER_SHARDING_HOIST_SLICES_H_
