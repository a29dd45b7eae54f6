// Folds inference batch norms into a scale of the convolution's weight and a
// shift; see passes.td.
#include "compiler/simplify/passes.h"
#include "compiler/simplify/scaled_conv.h"
#include "compiler/simplify/view.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace partita::simplify {

#define GEN_PASS_DEF_FOLDBATCHNORMPASS
#include "compiler/simplify/passes.h.inc"

namespace {

using mlir::LogicalResult;
using mlir::PatternRewriter;
using mlir::RankedTensorType;
using mlir::Value;
namespace arith = mlir::arith;
namespace math = mlir::math;

class FoldBatchNorm : public mlir::OpRewritePattern<nn::BatchNormOp> {
 public:
  FoldBatchNorm(mlir::MLIRContext* context, mlir::Pass::Statistic& folded,
                mlir::Pass::Statistic& scaled)
      : OpRewritePattern(context), folded_(folded), scaled_(scaled) {}

  LogicalResult matchAndRewrite(nn::BatchNormOp op,
                                PatternRewriter& rewriter) const override {
    if (op.getTraining()) return mlir::failure();
    const mlir::Location loc = op.getLoc();
    const int64_t feature = op.getFeature();
    // y = x * scale + shift
    const RankedTensorType vector = tensorType(op.getScale());
    const Value epsilon =
        buildSplat(rewriter, loc, vector, op.getEpsilon().convertToDouble());
    const Value variance =
        arith::AddFOp::create(rewriter, loc, op.getVariance(), epsilon);
    const Value scale =
        arith::MulFOp::create(rewriter, loc, op.getScale(),
                              math::RsqrtOp::create(rewriter, loc, variance));
    Value mean = op.getMean(), result;
    std::optional<ConvWithBias> conv =
        ConvWithBias::match(rewriter, op.getInput());
    if (conv && conv->feature() == feature) {
      result = buildScaledConv(rewriter, conv->conv, scale);
      if (conv->bias)
        mean = arith::SubFOp::create(rewriter, loc, mean, conv->bias);
      ++folded_;
    } else {
      result = arith::MulFOp::create(rewriter, loc, op.getInput(),
                                     alongFeature(rewriter, op, scale));
      ++scaled_;
    }
    const Value moved = arith::MulFOp::create(rewriter, loc, mean, scale);
    const Value shift =
        arith::SubFOp::create(rewriter, loc, op.getBias(), moved);
    rewriter.replaceOpWithNewOp<arith::AddFOp>(
        op, result, alongFeature(rewriter, op, shift));
    return mlir::success();
  }

 private:
  static Value alongFeature(PatternRewriter& rewriter, nn::BatchNormOp op,
                            Value vector) {
    const int64_t feature = op.getFeature();
    return nn::BroadcastOp::create(rewriter, op.getLoc(),
                                   op.getInput().getType(), vector, feature);
  }

  mlir::Pass::Statistic &folded_, &scaled_;
};

class FoldBatchNormPass
    : public impl::FoldBatchNormPassBase<FoldBatchNormPass> {
  void runOnOperation() override {
    mlir::RewritePatternSet patterns(&getContext());
    patterns.add<FoldBatchNorm>(&getContext(), folded, scaled);
    if (failed(
            mlir::applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

}  // namespace
}  // namespace partita::simplify
