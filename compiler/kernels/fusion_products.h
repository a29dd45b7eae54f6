// Kernels of products of ordered rows and what follows them.
#ifndef PARTITA_COMPILER_KERNELS_FUSION_PRODUCTS_H_
#define PARTITA_COMPILER_KERNELS_FUSION_PRODUCTS_H_

#include "llvm/ADT/ArrayRef.h"
#include "mlir/IR/Operation.h"

namespace partita::kernels {

// True if the kernel with these members, to which `op` would be added, has no
// product, or if all its other operations are elementwise, on the product's
// shape. A second product must have the same rows and matrices of the same
// form. `escapes`: other kernels read `op`, too.
bool productsAgree(mlir::Operation* op,
                   llvm::ArrayRef<mlir::Operation*> members, bool escapes);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_FUSION_PRODUCTS_H_
