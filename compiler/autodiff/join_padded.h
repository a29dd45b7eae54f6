// Gradients of slices, put together.
#ifndef PARTITA_COMPILER_AUTODIFF_JOIN_PADDED_H_
#define PARTITA_COMPILER_AUTODIFF_JOIN_PADDED_H_

#include "mlir/IR/PatternMatch.h"

namespace partita::autodiff {

// The gradient of a slice is padded with zeros to what it was taken from, and
// where all of it was sliced (packed projections) these are summed. Sums of
// neighbours become the neighbours side by side: nothing is added, and partial
// sums stay as small as they are.
void populateJoinPaddedPatterns(mlir::RewritePatternSet& patterns);

}  // namespace partita::autodiff

#endif  // PARTITA_COMPILER_AUTODIFF_JOIN_PADDED_H_
