// Joins the gradients of slices.
#ifndef PARTITA_COMPILER_AUTODIFF_JOIN_PADDED_H_
#define PARTITA_COMPILER_AUTODIFF_JOIN_PADDED_H_

#include "mlir/IR/PatternMatch.h"

namespace partita::autodiff {

// The gradient of a slice is padded with zeros to the shape of the slice's
// operand. If a value is sliced completely (packed projections), these paddings
// are summed. The patterns replace sums of adjacent paddings by concatenations:
// no addition is needed, and partial sums keep their size.
void populateJoinPaddedPatterns(mlir::RewritePatternSet& patterns);

}  // namespace partita::autodiff

#endif  // PARTITA_COMPILER_AUTODIFF_JOIN_PADDED_H_
