// Computes repeated values once and repeats the result; see passes.td.
#include "compiler/simplify/passes.h"
#include "compiler/simplify/view.h"
#include "dialects/nn/tensor.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace partita::simplify {

#define GEN_PASS_DEF_SHRINKBROADCASTSPASS
#include "compiler/simplify/passes.h.inc"

namespace {

using mlir::ArrayRef;
using mlir::LogicalResult;
using mlir::PatternRewriter;
using mlir::RankedTensorType;
using mlir::SmallVector;
using mlir::Value;

// Larger constants stay unchanged, because comparing elements takes time.
constexpr int64_t kMaxComparedElements = int64_t{1} << 22;

// Marks in `sizes` the dimensions along which the view does not repeat. Splats
// repeat along every dimension.
void addSizes(const View& view, ArrayRef<int64_t> shape,
              SmallVector<int64_t>& sizes) {
  if (splatConstant(view.value)) return;
  for (int64_t dim : view.largeDims()) sizes[dim] = shape[dim];
}

// Builds the view's tensor in the shape `sizes`, which has size 1 where all
// operands repeat.
Value shrunk(PatternRewriter& rewriter, mlir::Location loc, const View& view,
             ArrayRef<int64_t> sizes) {
  if (mlir::DenseElementsAttr constant = splatConstant(view.value)) {
    const auto type = RankedTensorType::get(sizes, constant.getElementType());
    return mlir::arith::ConstantOp::create(rewriter, loc,
                                           constant.resizeSplat(type));
  }
  return buildBroadcast(rewriter, loc, view, sizes);
}

// Replaces the only result of `op` by `small`, repeated.
void replaceByRepeated(PatternRewriter& rewriter, mlir::Operation* op,
                       Value small) {
  const View whole = viewOf(op->getResult(0));
  rewriter.replaceOpWithNewOp<nn::BroadcastOp>(op, tensorType(whole.value),
                                               small, whole.dims);
}

class ShrinkElementwise : public mlir::RewritePattern {
 public:
  ShrinkElementwise(mlir::MLIRContext* context, mlir::Pass::Statistic& count)
      : RewritePattern(MatchAnyOpTypeTag(), /*benefit=*/1, context),
        count_(count) {}

  LogicalResult matchAndRewrite(mlir::Operation* op,
                                PatternRewriter& rewriter) const override {
    if (op->getNumResults() != 1 || op->getNumOperands() == 0 ||
        !mlir::OpTrait::hasElementwiseMappableTraits(op)) {
      return mlir::failure();
    }
    auto type = mlir::dyn_cast<RankedTensorType>(op->getResult(0).getType());
    const auto is_tensor = llvm::IsaPred<RankedTensorType>;
    if (!type || type.getNumElements() == 0 ||
        !llvm::all_of(op->getOperandTypes(), is_tensor)) {
      return mlir::failure();
    }
    SmallVector<int64_t> sizes(type.getRank(), 1);
    SmallVector<View> views;
    for (Value operand : op->getOperands()) {
      views.push_back(peel(viewOf(operand)));
      addSizes(views.back(), type.getShape(), sizes);
    }
    if (llvm::equal(sizes, type.getShape())) return mlir::failure();

    SmallVector<Value> operands;
    for (const View& view : views) {
      operands.push_back(shrunk(rewriter, op->getLoc(), view, sizes));
    }
    // Drops discardable attributes: they describe the value's old shape.
    SmallVector<mlir::NamedAttribute> attributes(op->getAttrs());
    llvm::erase_if(attributes, [&](mlir::NamedAttribute attribute) {
      return op->getDiscardableAttrDictionary().contains(attribute.getName());
    });
    mlir::OperationState state(op->getLoc(), op->getName(), operands,
                               type.clone(sizes), attributes);
    replaceByRepeated(rewriter, op, rewriter.create(state)->getResult(0));
    ++count_;
    return mlir::success();
  }

 private:
  mlir::Pass::Statistic& count_;
};

// Repeated indices gather the same slices repeatedly.
class ShrinkGather : public mlir::OpRewritePattern<nn::GatherOp> {
 public:
  ShrinkGather(mlir::MLIRContext* context, mlir::Pass::Statistic& count)
      : OpRewritePattern(context), count_(count) {}

  LogicalResult matchAndRewrite(nn::GatherOp op,
                                PatternRewriter& rewriter) const override {
    const RankedTensorType type = op.getIndices().getType();
    if (op.getBatchDims() != 0 || op.getType().getNumElements() == 0) {
      return mlir::failure();
    }
    const View view = peel(viewOf(op.getIndices()));
    SmallVector<int64_t> sizes(type.getRank(), 1);
    addSizes(view, type.getShape(), sizes);
    sizes.back() = type.getShape().back();
    if (llvm::equal(sizes, type.getShape())) return mlir::failure();

    const Value indices = shrunk(rewriter, op.getLoc(), view, sizes);
    const RankedTensorType small = nn::inferGatherType(
        op.getInput().getType(), tensorType(indices), op.getAxes(), 0);
    replaceByRepeated(
        rewriter, op,
        nn::GatherOp::create(rewriter, op.getLoc(), small, op.getInput(),
                             indices, op.getAxesAttr(), op.getBatchDimsAttr()));
    ++count_;
    return mlir::success();
  }

 private:
  mlir::Pass::Statistic& count_;
};

// True if all elements along `dim` are equal, for every position in the other
// dimensions.
bool repeatsAlong(const nn::Tensor& tensor, int64_t dim) {
  const int64_t size = tensor.shape()[dim];
  int64_t step = 1;
  for (int64_t inner : tensor.shape().drop_front(dim + 1)) step *= inner;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const int64_t first = i - i / step % size * step;
    const bool equal = tensor.isFloat()
                           ? tensor.getFloat(i) == tensor.getFloat(first)
                           : tensor.getInt(i) == tensor.getInt(first);
    if (!equal) return false;
  }
  return true;
}

// Importers fold repetitions of constants; this pattern restores them.
class ShrinkConstant : public mlir::OpRewritePattern<mlir::arith::ConstantOp> {
 public:
  ShrinkConstant(mlir::MLIRContext* context, mlir::Pass::Statistic& count)
      : OpRewritePattern(context), count_(count) {}

  LogicalResult matchAndRewrite(mlir::arith::ConstantOp op,
                                PatternRewriter& rewriter) const override {
    auto constant = mlir::dyn_cast<mlir::DenseElementsAttr>(op.getValue());
    if (!constant || constant.isSplat() || constant.empty() ||
        constant.getNumElements() > kMaxComparedElements) {
      return mlir::failure();
    }
    const nn::Tensor whole = nn::Tensor::fromAttr(constant);
    SmallVector<int64_t> sizes;
    for (auto [dim, size] : llvm::enumerate(whole.shape())) {
      sizes.push_back(repeatsAlong(whole, dim) ? 1 : size);
    }
    if (llvm::equal(sizes, whole.shape())) return mlir::failure();
    nn::Tensor small(RankedTensorType::get(sizes, constant.getElementType()));
    for (int64_t i = 0; i < small.size(); ++i) {
      small.copyFrom(i, whole, whole.position(small.index(i)));
    }
    replaceByRepeated(
        rewriter, op,
        mlir::arith::ConstantOp::create(rewriter, op.getLoc(), small.toAttr()));
    ++count_;
    return mlir::success();
  }

 private:
  mlir::Pass::Statistic& count_;
};

class ShrinkBroadcastsPass
    : public impl::ShrinkBroadcastsPassBase<ShrinkBroadcastsPass> {
  void runOnOperation() override {
    mlir::RewritePatternSet patterns(&getContext());
    patterns.add<ShrinkElementwise, ShrinkGather, ShrinkConstant>(&getContext(),
                                                                  shrunk);
    if (failed(
            mlir::applyPatternsGreedily(getOperation(), std::move(patterns)))) {
      signalPassFailure();
    }
  }
};

}  // namespace
}  // namespace partita::simplify
