// Runs the raising patterns: parts of composites first, attention last; see
// passes.td.
#include "compiler/simplify/passes.h"
#include "compiler/simplify/raise_patterns.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace partita::simplify {

#define GEN_PASS_DEF_RAISECOMPOSITESPASS
#include "compiler/simplify/passes.h.inc"

namespace {

class RaiseCompositesPass
    : public impl::RaiseCompositesPassBase<RaiseCompositesPass> {
  void runOnOperation() override {
    mlir::RewritePatternSet parts(&getContext());
    populateRaisePowers(parts);
    populateRaiseSoftmax(parts, softmaxes);
    populateRaiseNorms(parts, layer_norms, rms_norms);
    if (failed(mlir::applyPatternsGreedily(getOperation(), std::move(parts))))
      return signalPassFailure();

    mlir::RewritePatternSet products(&getContext());
    populateRaiseGroupedDots(products);
    populateRaiseRaggedDots(products);
    if (failed(
            mlir::applyPatternsGreedily(getOperation(), std::move(products))))
      return signalPassFailure();

    mlir::RewritePatternSet mixtures(&getContext());
    populateUnsortRows(mixtures);
    populateRaiseExperts(mixtures, experts);
    if (failed(
            mlir::applyPatternsGreedily(getOperation(), std::move(mixtures))))
      return signalPassFailure();

    mlir::RewritePatternSet attention(&getContext());
    populateRaiseAttention(attention, attentions);
    if (failed(
            mlir::applyPatternsGreedily(getOperation(), std::move(attention))))
      signalPassFailure();
  }
};

}  // namespace
}  // namespace partita::simplify
