// Raises products of each row with a matrix that is gathered for it: the
// gathered copies are larger than all other tensors of a layer.
#include "compiler/simplify/raise_patterns.h"
#include "compiler/simplify/view.h"
#include "dialects/nn/dialect.h"
#include "llvm/ADT/STLExtras.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

namespace partita::simplify {
namespace {

using mlir::ArrayRef;
using mlir::LogicalResult;
using mlir::PatternRewriter;
using mlir::Value;
namespace arith = mlir::arith;

Value withoutReshapes(Value value) {
  while (auto reshape = value.getDefiningOp<nn::ReshapeOp>())
    value = reshape.getInput();
  return value;
}

// The choices of a top_k among at most `count` values that `indices` hold, with
// or without counting negative ones from the end; null if they hold others.
// nn.gather clamps indices outside their range, nn.grouped_dot gives 0.
Value choicesIn(Value indices, int64_t count) {
  indices = withoutReshapes(indices);
  if (auto select = indices.getDefiningOp<arith::SelectOp>()) {
    auto compare = select.getCondition().getDefiningOp<arith::CmpIOp>();
    if (!compare || compare.getPredicate() != arith::CmpIPredicate::slt ||
        compare.getLhs() != select.getFalseValue() ||
        !mlir::matchPattern(compare.getRhs(), mlir::m_Zero()))
      return {};
    indices = withoutReshapes(select.getFalseValue());
  }
  auto choice = indices.getDefiningOp<nn::TopKOp>();
  return choice && indices == choice.getIndices() &&
                 choice.getInput().getType().getShape().back() <= count
             ? indices
             : Value();
}

class RaiseGroupedDot : public mlir::OpRewritePattern<nn::DotGeneralOp> {
 public:
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(nn::DotGeneralOp dot,
                                PatternRewriter& rewriter) const override {
    if (dot.getLhsBatch() != ArrayRef<int64_t>{0} ||
        dot.getRhsBatch() != ArrayRef<int64_t>{0} ||
        dot.getLhsContract().size() != 1)
      return mlir::failure();
    return mlir::success(
        raise(dot, dot.getLhs(), dot.getLhsContract()[0], dot.getRhs(),
              dot.getRhsContract()[0], rewriter) ||
        raise(dot, dot.getRhs(), dot.getRhsContract()[0], dot.getLhs(),
              dot.getLhsContract()[0], rewriter));
  }

 private:
  // `matrices` [S, N, K] or [S, K, N], of which `contract` is K, times `rows`,
  // which have one row for each.
  static bool raise(nn::DotGeneralOp dot, Value matrices, int64_t contract,
                    Value rows, int64_t rows_contract,
                    PatternRewriter& rewriter) {
    auto gather = matrices.getDefiningOp<nn::GatherOp>();
    const mlir::RankedTensorType type = tensorType(rows);
    if (!gather || gather.getBatchDims() != 0 ||
        gather.getAxes() != ArrayRef<int64_t>{0} ||
        gather.getInput().getType().getRank() != 3 ||
        gather.getIndices().getType().getRank() != 2)
      return false;
    const int64_t count = type.getDimSize(0),
                  width = type.getDimSize(rows_contract);
    if (type.getNumElements() != count * width) return false;
    const Value ids = choicesIn(gather.getIndices(),
                                gather.getInput().getType().getDimSize(0));
    if (!ids) return false;
    const mlir::Location loc = dot.getLoc();
    const int64_t outputs =
        gather.getInput().getType().getDimSize(contract == 2 ? 1 : 2);
    const Value product = nn::GroupedDotOp::create(
        rewriter, loc, type.clone({count, outputs}),
        buildReshape(rewriter, loc, rows, {count, width}),
        buildReshape(rewriter, loc, ids, {count}), gather.getInput(),
        /*transposed=*/contract == 1);
    rewriter.replaceOp(
        dot, buildReshape(rewriter, loc, product, dot.getType().getShape()));
    return true;
  }
};

}  // namespace

void populateRaiseGroupedDots(mlir::RewritePatternSet& patterns) {
  patterns.add<RaiseGroupedDot>(patterns.getContext());
}

}  // namespace partita::simplify
