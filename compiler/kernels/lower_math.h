// math operations on vectors and scalars in terms of what LLVM has instructions
// or libm has functions for.
#ifndef PARTITA_COMPILER_KERNELS_LOWER_MATH_H_
#define PARTITA_COMPILER_KERNELS_LOWER_MATH_H_

#include "mlir/IR/PatternMatch.h"

namespace partita::kernels {

// f32 by polynomials; f64, and functions without a polynomial, by calls of libm
// for each lane.
void populateMathLowerings(mlir::RewritePatternSet& patterns);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_LOWER_MATH_H_
