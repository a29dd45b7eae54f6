// Layouts across function boundaries.
#ifndef PARTITA_COMPILER_KERNELS_LAYOUTS_OF_CALLS_H_
#define PARTITA_COMPILER_KERNELS_LAYOUTS_OF_CALLS_H_

#include <utility>

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::kernels {

// Moves transposes to and from channels-last out of private functions. If a
// function transposes an image argument, directly or behind elementwise work,
// the callers transpose it instead; likewise for results. There the transpose
// often meets its inverse. Returns the functions that changed, callers
// included. `moved` holds the arguments and results that have been moved: none
// is moved twice.
struct MovedBorders {
  llvm::DenseSet<std::pair<mlir::Operation*, unsigned>> arguments, results;
};
llvm::SetVector<mlir::func::FuncOp> moveTransposesToCallers(
    mlir::ModuleOp module, MovedBorders& moved);

// The calls of each function whose signature can change: a private function
// without other uses.
llvm::StringMap<llvm::SmallVector<mlir::func::CallOp>> findCalls(
    mlir::ModuleOp module);
// Takes the types of a function from its arguments and returned values.
void updateType(mlir::func::FuncOp function);

// True if `value` is a transpose by `perm`, or can be had untransposed at
// little cost, as a constant or a broadcast.
bool canUntranspose(mlir::Value value, llvm::ArrayRef<int64_t> perm);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_LAYOUTS_OF_CALLS_H_
