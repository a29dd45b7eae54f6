// What a value is exact to: sums are as exact as their parts.
#ifndef PARTITA_COMPILER_DRIVER_VERIFY_ROUNDING_BOUNDS_H_
#define PARTITA_COMPILER_DRIVER_VERIFY_ROUNDING_BOUNDS_H_

#include <vector>

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::driver {

// The largest magnitudes of what a run of an operation gave, one per result.
using LargestOf = llvm::function_ref<std::vector<double>(mlir::Operation*)>;
// Takes the bounds of these results.
using TakeBounds =
    llvm::function_ref<void(mlir::Operation*, llvm::ArrayRef<double>)>;

// Walks one run of `function` in its order, callees included, and finds for
// each result the magnitude that its roundings are a part of: its largest
// element, or, where parts cancel to less than a tenth of themselves (the
// gradient of a bias that a softmax does not see), that of the parts; what is
// made of such a value is no more exact. `arguments` are the largest magnitudes
// of the function's arguments. Returns the bounds of its results.
std::vector<double> boundRoundings(mlir::func::FuncOp function,
                                   llvm::ArrayRef<double> arguments,
                                   LargestOf largest_of, TakeBounds take);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_VERIFY_ROUNDING_BOUNDS_H_
