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

// Differentiates a call through functions that the implementation provides.
// `results` and `wanted` are as in Gradient. May replace `call` by another call
// with the same first results.
using DifferentiateCall =
    llvm::function_ref<mlir::FailureOr<llvm::SmallVector<mlir::Value>>(
        mlir::OpBuilder& builder, mlir::func::CallOp call,
        llvm::ArrayRef<mlir::Value> results, llvm::ArrayRef<bool> wanted)>;

// Decomposes composites that depend on `wanted` and have no gradient of their
// own.
mlir::LogicalResult decomposeForGradients(
    mlir::Block& block, const llvm::DenseSet<mlir::Value>& wanted);

// Appends operations that compute gradients before the block's terminator.
// `gradients` holds the gradients of some values of the block; afterwards it
// also holds the gradients of the values `wanted`, which must be leaves of the
// computation. A wanted value without an entry has a zero gradient. Emits a
// diagnostic at an operation that needs a gradient and has none.
mlir::LogicalResult reverse(mlir::Block& block,
                            const llvm::DenseSet<mlir::Value>& wanted,
                            ValueMap& gradients,
                            DifferentiateCall differentiate_call);

}  // namespace partita::autodiff

#endif  // PARTITA_COMPILER_AUTODIFF_REVERSE_H_
