// Recognizes formulas that a library can compute as the last step of a product:
// GELU by the tanh approximation, and its gradient.
#ifndef PARTITA_COMPILER_KERNELS_PRODUCT_FORMULAS_H_
#define PARTITA_COMPILER_KERNELS_PRODUCT_FORMULAS_H_

#include "llvm/ADT/SmallVector.h"
#include "mlir/IR/Value.h"

namespace partita::kernels {

// Values of 16-bit floats that elementwise operations on f32 compute from
// `product`, itself of 16-bit floats: candidates for the functions below.
llvm::SmallVector<mlir::Value> formulasOf(mlir::Value product);

// True if `formula` is gelu(x), by the tanh approximation. Rewrites leave
// formulas in many forms, and so they are not compared but evaluated at many
// points. GELU by erf differs by up to 5e-4 and is not accepted.
bool isGelu(mlir::Value formula, mlir::Value x);

// The value u, of the product's type, for which `formula` is product *
// gelu'(u); null if there is none, or if another operation reads the product
// or a value between it and the formula.
mlir::Value geluGradientInput(mlir::Value formula, mlir::Value product);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_PRODUCT_FORMULAS_H_
