// Chooses how each math operation is computed.
#include "compiler/kernels/lower_math.h"

#include "llvm/ADT/STLExtras.h"
#include "mlir/Conversion/MathToLibm/MathToLibm.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"

namespace partita::kernels {

using namespace mlir;

void populateMathLowerings(RewritePatternSet& patterns) {
  populateMathPolynomialApproximationPatterns(
      patterns, [](StringRef) { return true; }, /*benefit=*/3);
  math::populateExpansionPatterns(
      patterns, {"tan", "sinh", "cosh", "asinh", "acosh", "atanh", "exp2",
                 "powf", "rsqrt", "ceilf", "roundf", "roundeven", "clampf"});
  RewritePatternSet calls(patterns.getContext());
  populateMathToLibmConversionPatterns(calls);
  // These are instructions.
  static constexpr StringRef kInstructions[] = {
      "math.absf",  "math.ceil",  "math.copysign",  "math.floor", "math.fma",
      "math.round", "math.rsqrt", "math.roundeven", "math.sqrt",  "math.trunc"};
  for (std::unique_ptr<RewritePattern>& pattern : calls.getNativePatterns())
    if (!pattern->getRootKind() ||
        !llvm::is_contained(kInstructions,
                            pattern->getRootKind()->getStringRef()))
      patterns.add(std::move(pattern));
}

}  // namespace partita::kernels
