// Evaluates operations on constants at compile time.
#ifndef PARTITA_DIALECTS_NN_FOLD_H_
#define PARTITA_DIALECTS_NN_FOLD_H_

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"

namespace partita::nn {

// Maximum number of elements of a folded result; larger constants would bloat
// the IR.
inline constexpr int64_t kMaxFoldedElements = 64 * 1024;
// Maximum number of elements of an operand that is unpacked to compute a small
// result.
inline constexpr int64_t kMaxUnpackedElements = 16 * 1024 * 1024;

// Computes the results of an operation with its reference. All operands must be
// constants. Fails without a diagnostic if an operand is not a constant, the
// operation has no reference or an undefined result for these operands, a
// result has more than `max_elements` elements, or an operand has more than
// kMaxUnpackedElements.
mlir::FailureOr<llvm::SmallVector<mlir::DenseElementsAttr>> foldByReference(
    mlir::Operation* op, int64_t max_elements);

// The same with the operands' values given. A null attribute means that the
// operand is not a constant.
mlir::FailureOr<llvm::SmallVector<mlir::DenseElementsAttr>> foldByReference(
    mlir::Operation* op, llvm::ArrayRef<mlir::Attribute> operands,
    int64_t max_elements);

}  // namespace partita::nn

#endif  // PARTITA_DIALECTS_NN_FOLD_H_
