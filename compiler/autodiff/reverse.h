// Reverse-mode differentiation of one block (Griewank and Walther, Evaluating
// Derivatives, 2008): operations are visited last to first, and each hands the
// gradients of its results on to its operands.
#ifndef PARTITA_COMPILER_AUTODIFF_REVERSE_H_
#define PARTITA_COMPILER_AUTODIFF_REVERSE_H_

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

namespace partita::autodiff {

using ValueMap = llvm::DenseMap<mlir::Value, mlir::Value>;

// What happens to a call: it hands gradients on as an operation does, by means
// of functions that somebody else makes. `results` and `operands` are as in
// Gradient; `call` may be replaced by another one with the same first results.
using DifferentiateCall =
    llvm::function_ref<mlir::FailureOr<llvm::SmallVector<mlir::Value>>(
        mlir::OpBuilder& builder, mlir::func::CallOp call,
        llvm::ArrayRef<mlir::Value> results, llvm::ArrayRef<bool> wanted)>;

// Decomposes composites that depend on the values `wanted` and have no gradient
// of their own.
mlir::LogicalResult decomposeForGradients(
    mlir::Block& block, const llvm::DenseSet<mlir::Value>& wanted);

// Appends, in
// front of the block's terminator, what computes the gradients of the values
// `wanted` that depend on nothing else, given those of some values of the block
// in `gradients`; they are found there afterwards (a wanted value without an
// entry has a gradient of zero). Emits a diagnostic at an operation that has no
// gradient though one is needed.
mlir::LogicalResult reverse(mlir::Block& block,
                            const llvm::DenseSet<mlir::Value>& wanted,
                            ValueMap& gradients,
                            DifferentiateCall differentiate_call);

}  // namespace partita::autodiff

#endif  // PARTITA_COMPILER_AUTODIFF_REVERSE_H_
