// Chooses how each math operation is computed.
#include "compiler/kernels/lower_math.h"

#include "llvm/ADT/STLExtras.h"
#include "mlir/Conversion/MathToLibm/MathToLibm.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"

namespace partita::kernels {

using namespace mlir;

namespace {

// 1 / sqrt(x): upstream's expansion of rsqrt does not handle vectors.
struct RsqrtByDivision : OpRewritePattern<math::RsqrtOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::RsqrtOp op,
                                PatternRewriter& rewriter) const override {
    const Location loc = op.getLoc();
    Value one = arith::ConstantOp::create(rewriter, loc,
                                          rewriter.getOneAttr(op.getType()));
    Value root = math::SqrtOp::create(rewriter, loc, op.getOperand());
    rewriter.replaceOpWithNewOp<arith::DivFOp>(op, one, root);
    return success();
  }
};

}  // namespace

void populateMathLowerings(RewritePatternSet& patterns) {
  populateMathPolynomialApproximationPatterns(
      patterns, [](StringRef) { return true; }, /*benefit=*/3);
  math::populateExpansionPatterns(
      patterns, {"tan", "sinh", "cosh", "asinh", "acosh", "atanh", "exp2",
                 "powf", "ceilf", "roundf", "roundeven", "clampf"});
  patterns.add<RsqrtByDivision>(patterns.getContext());
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
