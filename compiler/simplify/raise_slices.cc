// A gather of consecutive rows is a slice, whose gradient needs no scatter.
#include "compiler/simplify/raise_patterns.h"
#include "compiler/simplify/view.h"
#include "dialects/nn/dialect.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"

namespace partita::simplify {
namespace {

// The first of constant indices that count up by one; nullopt otherwise.
std::optional<int64_t> firstOfRun(mlir::Value indices) {
  mlir::DenseIntElementsAttr constant;
  if (!matchPattern(indices, mlir::m_Constant(&constant)) ||
      constant.getNumElements() == 0)
    return std::nullopt;
  const int64_t first = (*constant.begin()).getSExtValue();
  int64_t next = first;
  for (const llvm::APInt& index : constant)
    if (index.getSExtValue() != next++) return std::nullopt;
  return first;
}

class SliceFromGather : public mlir::OpRewritePattern<nn::GatherOp> {
 public:
  using OpRewritePattern::OpRewritePattern;

  mlir::LogicalResult matchAndRewrite(
      nn::GatherOp op, mlir::PatternRewriter& rewriter) const override {
    const llvm::ArrayRef<int64_t> shape = op.getInput().getType().getShape();
    if (op.getBatchDims() != 0 || op.getAxes() != llvm::ArrayRef<int64_t>{0})
      return mlir::failure();
    const std::optional<int64_t> first = firstOfRun(op.getIndices());
    const int64_t count = op.getIndices().getType().getNumElements();
    if (!first || *first < 0 || *first + count > shape.front())
      return mlir::failure();
    mlir::SmallVector<int64_t> starts(shape.size(), 0),
        strides(shape.size(), 1), sizes(shape);
    starts.front() = *first;
    sizes.front() = count;
    const mlir::Value rows = nn::SliceOp::create(
        rewriter, op.getLoc(),
        mlir::RankedTensorType::get(sizes,
                                    op.getInput().getType().getElementType()),
        op.getInput(), starts, strides);
    rewriter.replaceOp(
        op, buildReshape(rewriter, op.getLoc(), rows, op.getType().getShape()));
    return mlir::success();
  }
};

}  // namespace

void populateRaiseSlices(mlir::RewritePatternSet& patterns) {
  patterns.add<SliceFromGather>(patterns.getContext());
}

}  // namespace partita::simplify
