// Elementwise operations move in front of repetitions that all their operands
// share; see passes.td.
#include "compiler/simplify/passes.h"
#include "compiler/simplify/view.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace partita::simplify {

#define GEN_PASS_DEF_SHRINKBROADCASTSPASS
#include "compiler/simplify/passes.h.inc"

namespace {

using mlir::LogicalResult;
using mlir::RankedTensorType;
using mlir::SmallVector;
using mlir::Value;

class ComputeBeforeRepeating : public mlir::RewritePattern {
 public:
  ComputeBeforeRepeating(mlir::MLIRContext* context,
                         mlir::Pass::Statistic& shrunk)
      : RewritePattern(MatchAnyOpTypeTag(), /*benefit=*/1, context),
        shrunk_(shrunk) {}

  LogicalResult matchAndRewrite(
      mlir::Operation* op, mlir::PatternRewriter& rewriter) const override {
    if (op->getNumResults() != 1 || op->getNumOperands() == 0 ||
        !mlir::OpTrait::hasElementwiseMappableTraits(op)) {
      return mlir::failure();
    }
    auto type = mlir::dyn_cast<RankedTensorType>(op->getResult(0).getType());
    if (!type ||
        !llvm::all_of(op->getOperandTypes(), llvm::IsaPred<RankedTensorType>))
      return mlir::failure();

    // Sizes before repeating: a dimension repeats in the result if it does so
    // in every operand.
    SmallVector<int64_t> sizes(type.getRank(), 1);
    SmallVector<View> views;
    for (Value operand : op->getOperands()) {
      views.push_back(peel(viewOf(operand)));
      if (splat(views.back().value)) continue;
      for (int64_t dim : views.back().largeDims()) {
        sizes[dim] = type.getDimSize(dim);
      }
    }
    if (llvm::equal(sizes, type.getShape()) ||
        llvm::is_contained(type.getShape(), 0))
      return mlir::failure();

    SmallVector<Value> operands;
    for (const View& view : views)
      operands.push_back(asOperand(rewriter, op->getLoc(), view, sizes));
    mlir::OperationState state(op->getLoc(), op->getName(), operands,
                               type.clone(sizes), op->getAttrs());
    mlir::Operation* small = rewriter.create(state);
    rewriter.replaceOpWithNewOp<nn::BroadcastOp>(op, type, small->getResult(0),
                                                 viewOf(op->getResult(0)).dims);
    ++shrunk_;
    return mlir::success();
  }

 private:
  // The value as a constant that repeats along every dimension; null if it is
  // not one.
  static mlir::DenseElementsAttr splat(Value value) {
    mlir::DenseElementsAttr constant;
    const bool is_constant =
        mlir::matchPattern(value, mlir::m_Constant(&constant));
    return is_constant && constant.isSplat() ? constant
                                             : mlir::DenseElementsAttr();
  }

  static Value asOperand(mlir::PatternRewriter& rewriter, mlir::Location loc,
                         const View& view, mlir::ArrayRef<int64_t> sizes) {
    if (mlir::DenseElementsAttr constant = splat(view.value)) {
      const auto type = RankedTensorType::get(sizes, constant.getElementType());
      return mlir::arith::ConstantOp::create(rewriter, loc,
                                             constant.resizeSplat(type));
    }
    // Dimensions of size 1 may stand anywhere; drop them, then repeat what
    // other operands do not.
    SmallVector<int64_t> large;
    for (int64_t size : tensorType(view.value).getShape()) {
      if (size != 1) large.push_back(size);
    }
    return buildBroadcast(rewriter, loc,
                          buildReshape(rewriter, loc, view.value, large), sizes,
                          view.largeDims());
  }

  mlir::Pass::Statistic& shrunk_;
};

class ShrinkBroadcastsPass
    : public impl::ShrinkBroadcastsPassBase<ShrinkBroadcastsPass> {
  void runOnOperation() override {
    mlir::RewritePatternSet patterns(&getContext());
    patterns.add<ComputeBeforeRepeating>(&getContext(), shrunk);
    if (failed(
            mlir::applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

}  // namespace
}  // namespace partita::simplify
