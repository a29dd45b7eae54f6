// Layouts across the borders of functions.
#ifndef PARTITA_COMPILER_KERNELS_LAYOUTS_OF_CALLS_H_
#define PARTITA_COMPILER_KERNELS_LAYOUTS_OF_CALLS_H_

#include <utility>

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::kernels {

// Moves transposes to and from channels-last out of private functions: an
// image that is transposed inside, directly or behind elementwise work, is
// transposed by the callers, and so is a result. There it often meets its
// inverse. Returns the functions that this changed, callers included. `moved`
// has the arguments and results of functions that have been moved: none is
// again.
struct MovedBorders {
  llvm::DenseSet<std::pair<mlir::Operation*, unsigned>> arguments, results;
};
llvm::SetVector<mlir::func::FuncOp> moveTransposesToCallers(
    mlir::ModuleOp module, MovedBorders& moved);

// Whether `value` is something transposed by `perm`, or can be had in that
// something's order at little cost: a constant, what is spread out.
bool canUntranspose(mlir::Value value, llvm::ArrayRef<int64_t> perm);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_LAYOUTS_OF_CALLS_H_
