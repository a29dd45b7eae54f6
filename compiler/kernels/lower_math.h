// math operations on vectors and scalars in terms of what LLVM has instructions
// or a library has functions for.
#ifndef PARTITA_COMPILER_KERNELS_LOWER_MATH_H_
#define PARTITA_COMPILER_KERNELS_LOWER_MATH_H_

#include "mlir/IR/PatternMatch.h"

namespace partita::kernels {

// What generated code may call.
enum class MathLibrary {
  kLibm,  // for f64 and for functions without a good polynomial, lane for lane
  kNone,  // f32 by polynomials, good and less good ones; f64 stays as it is
};

void populateMathLowerings(mlir::RewritePatternSet& patterns,
                           MathLibrary library);

// Whether LLVM has an instruction for this operation of math.
bool isMathInstruction(mlir::Operation* op);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_LOWER_MATH_H_
