// Folds inference batch norms into a scale of the convolution's weight and a
// shift; see passes.td.
#include "compiler/simplify/passes.h"
#include "compiler/simplify/view.h"
#include "mlir/IR/IRMapping.h"
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

// A convolution with a single use whose features are dimension `feature`, and
// the bias added to it, if any.
struct ConvWithBias {
  nn::ConvOp conv;
  Value bias;  // a vector, or null

  static std::optional<ConvWithBias> match(PatternRewriter& rewriter,
                                           Value value, int64_t feature) {
    if (!value.hasOneUse()) return std::nullopt;
    if (auto conv = value.getDefiningOp<nn::ConvOp>()) {
      const int64_t conv_feature =
          conv.getChannelsLast() ? conv.getType().getRank() - 1 : 1;
      return conv_feature == feature
                 ? std::optional(ConvWithBias{conv, Value()})
                 : std::nullopt;
    }
    auto add = value.getDefiningOp<arith::AddFOp>();
    if (!add) return std::nullopt;
    for (unsigned operand : {0u, 1u}) {
      const View bias = peel(viewOf(add->getOperand(1 - operand)));
      if (bias.largeDims() != mlir::SmallVector<int64_t>{feature}) continue;
      std::optional<ConvWithBias> conv =
          match(rewriter, add->getOperand(operand), feature);
      if (!conv || conv->bias) continue;
      conv->bias = buildReshape(rewriter, value.getLoc(), bias.value,
                                {tensorType(value).getDimSize(feature)});
      return conv;
    }
    return std::nullopt;
  }
};

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
    if (std::optional<ConvWithBias> conv =
            ConvWithBias::match(rewriter, op.getInput(), feature)) {
      result = scaledConv(rewriter, conv->conv, scale);
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

  // Multiplies the weights of each output feature o by scale[o].
  static Value scaledConv(PatternRewriter& rewriter, nn::ConvOp conv,
                          Value scale) {
    const Value factors = nn::BroadcastOp::create(
        rewriter, scale.getLoc(), conv.getWeight().getType(), scale,
        llvm::ArrayRef<int64_t>{0});
    const Value weight = arith::MulFOp::create(rewriter, scale.getLoc(),
                                               conv.getWeight(), factors);
    mlir::IRMapping mapping;
    mapping.map(conv.getWeight(), weight);
    return rewriter.clone(*conv, mapping)->getResult(0);
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
