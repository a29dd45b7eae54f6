// Evaluation of operations on constants at compile time.
#ifndef PARTITA_DIALECTS_NN_FOLD_H_
#define PARTITA_DIALECTS_NN_FOLD_H_

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"

namespace partita::nn {

// The largest result, in elements, that folders compute; larger constants would
// bloat the IR.
inline constexpr int64_t kMaxFoldedElements = 64 * 1024;
// The largest operand that is unpacked in order to compute a small result.
inline constexpr int64_t kMaxUnpackedElements = 16 * 1024 * 1024;

// The results of an operation all of whose operands are constants, computed by
// its reference. Fails, with no diagnostic, if an operand is not a constant,
// the operation has no reference or no meaning for these operands, a result has
// more than `max_elements` elements or an operand more than
// kMaxUnpackedElements.
mlir::FailureOr<llvm::SmallVector<mlir::DenseElementsAttr>> foldByReference(
    mlir::Operation* op, int64_t max_elements);

// The same with the operands' values given; a null attribute is not a constant.
mlir::FailureOr<llvm::SmallVector<mlir::DenseElementsAttr>> foldByReference(
    mlir::Operation* op, llvm::ArrayRef<mlir::Attribute> operands,
    int64_t max_elements);

}  // namespace partita::nn

#endif  // PARTITA_DIALECTS_NN_FOLD_H_
