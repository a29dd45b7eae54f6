// Lowers math operations on vectors and scalars to operations that LLVM has
// instructions for, and to library functions.
#ifndef PARTITA_COMPILER_KERNELS_LOWER_MATH_H_
#define PARTITA_COMPILER_KERNELS_LOWER_MATH_H_

#include "mlir/IR/PatternMatch.h"

namespace partita::kernels {

// The math library that generated code may call.
enum class MathLibrary {
  kLibm,  // libm, for f64 and for functions without a good polynomial, lane by
          // lane
  kNone,  // none: f32 uses polynomials, even less accurate ones; f64 stays as
          // it is
};

void populateMathLowerings(mlir::RewritePatternSet& patterns,
                           MathLibrary library);

// True if LLVM has an instruction for this operation of the math dialect.
bool isMathInstruction(mlir::Operation* op);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_LOWER_MATH_H_
