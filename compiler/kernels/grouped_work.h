// The work of products of rows with the matrices of their indices.
#ifndef PARTITA_COMPILER_KERNELS_GROUPED_WORK_H_
#define PARTITA_COMPILER_KERNELS_GROUPED_WORK_H_

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"

namespace partita::kernels {

// Floating-point operations of nn.grouped_dot or its weight gradient: each row
// is multiplied by one matrix.
inline int64_t operationsOfGrouped(mlir::Operation* op) {
  const auto typeOf = [](mlir::Value value) {
    return llvm::cast<mlir::RankedTensorType>(value.getType());
  };
  return 2 * typeOf(op->getOperand(0)).getNumElements() *
         typeOf(op->getResult(0)).getDimSize(1);
}

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_GROUPED_WORK_H_
