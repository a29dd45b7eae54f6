// Bounds of rounding errors: a sum is as exact as its parts.
#ifndef PARTITA_COMPILER_DRIVER_VERIFY_ROUNDING_BOUNDS_H_
#define PARTITA_COMPILER_DRIVER_VERIFY_ROUNDING_BOUNDS_H_

#include <vector>

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::driver {

// The largest magnitude of each result of an operation in a run.
using LargestOf = llvm::function_ref<std::vector<double>(mlir::Operation*)>;
// Receives the bounds of an operation's results.
using TakeBounds =
    llvm::function_ref<void(mlir::Operation*, llvm::ArrayRef<double>)>;

// Walks one run of `function` in order, callees included, and finds for each
// result the magnitude that its rounding errors are relative to. This is the
// largest element of the result; or that of its parts, if they cancel to less
// than a tenth of themselves, as in the gradient of a bias before a softmax.
// Values computed from such a result are no more exact. `arguments` are the
// largest magnitudes of the function's arguments. Returns the bounds of its
// results.
std::vector<double> boundRoundings(mlir::func::FuncOp function,
                                   llvm::ArrayRef<double> arguments,
                                   LargestOf largest_of, TakeBounds take);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_VERIFY_ROUNDING_BOUNDS_H_
