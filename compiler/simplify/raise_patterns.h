// The patterns that make up --partita-raise-composites. Each counts what it
// raised.
#ifndef PARTITA_COMPILER_SIMPLIFY_RAISE_PATTERNS_H_
#define PARTITA_COMPILER_SIMPLIFY_RAISE_PATTERNS_H_

#include "mlir/IR/PatternMatch.h"
#include "mlir/Pass/Pass.h"

namespace partita::simplify {

// Powers with simple exponents as products and roots; divisions by powers of
// two as products.
void populateRaisePowers(mlir::RewritePatternSet& patterns);
void populateRaiseSoftmax(mlir::RewritePatternSet& patterns,
                          mlir::Pass::Statistic& softmaxes);
void populateRaiseNorms(mlir::RewritePatternSet& patterns,
                        mlir::Pass::Statistic& layer_norms,
                        mlir::Pass::Statistic& rms_norms);
// Wants softmaxes and powers raised before.
void populateRaiseAttention(mlir::RewritePatternSet& patterns,
                            mlir::Pass::Statistic& attentions);

}  // namespace partita::simplify

#endif  // PARTITA_COMPILER_SIMPLIFY_RAISE_PATTERNS_H_
