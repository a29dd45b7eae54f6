// The patterns of --partita-raise-composites. Each counts the operations that
// it raised.
#ifndef PARTITA_COMPILER_SIMPLIFY_RAISE_PATTERNS_H_
#define PARTITA_COMPILER_SIMPLIFY_RAISE_PATTERNS_H_

#include "mlir/IR/PatternMatch.h"
#include "mlir/Pass/Pass.h"

namespace partita::simplify {

// Rewrites powers with simple exponents as products and roots, and divisions by
// powers of two as products.
void populateRaisePowers(mlir::RewritePatternSet& patterns);
void populateRaiseSoftmax(mlir::RewritePatternSet& patterns,
                          mlir::Pass::Statistic& softmaxes);
void populateRaiseNorms(mlir::RewritePatternSet& patterns,
                        mlir::Pass::Statistic& layer_norms,
                        mlir::Pass::Statistic& rms_norms);
// Makes nn.grouped_dot of products with matrices that are gathered by a choice
// of the largest scores.
void populateRaiseGroupedDots(mlir::RewritePatternSet& patterns);
// Makes nn.grouped_dot and its gradient of products of rows that are zero
// outside their group of consecutive rows.
void populateRaiseRaggedDots(mlir::RewritePatternSet& patterns);
// Moves the rows of grouped products back into the order that they had before
// they were sorted by group.
void populateUnsortRows(mlir::RewritePatternSet& patterns);
// Requires rows in their own order; run it with populateUnsortRows.
void populateRaiseExperts(mlir::RewritePatternSet& patterns,
                          mlir::Pass::Statistic& experts);
// Requires that softmaxes and powers have been raised before.
void populateRaiseAttention(mlir::RewritePatternSet& patterns,
                            mlir::Pass::Statistic& attentions);

}  // namespace partita::simplify

#endif  // PARTITA_COMPILER_SIMPLIFY_RAISE_PATTERNS_H_
