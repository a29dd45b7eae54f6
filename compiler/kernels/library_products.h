// Which matrix products and convolutions libraries compute.
#ifndef PARTITA_COMPILER_KERNELS_LIBRARY_PRODUCTS_H_
#define PARTITA_COMPILER_KERNELS_LIBRARY_PRODUCTS_H_

#include "llvm/ADT/STLExtras.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"

namespace partita::kernels {

// True if the result is f32, bf16 or f16 and no tensor is empty. Libraries,
// too, sum 16-bit factors in f32 and round once.
inline bool isLibraryProduct(mlir::Operation* op) {
  const auto result =
      llvm::cast<mlir::RankedTensorType>(op->getResult(0).getType());
  const mlir::Type element = result.getElementType();
  return (element.isF32() || element.isBF16() || element.isF16()) &&
         result.getNumElements() > 0 &&
         llvm::all_of(op->getOperandTypes(), [](mlir::Type type) {
           return llvm::cast<mlir::RankedTensorType>(type).getNumElements() > 0;
         });
}

// True if libraries can choose matrices by indices of this type.
inline bool isLibraryIndex(mlir::Value ids) {
  const mlir::Type element =
      llvm::cast<mlir::RankedTensorType>(ids.getType()).getElementType();
  return element.isInteger(32) || element.isInteger(64);
}

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_LIBRARY_PRODUCTS_H_
