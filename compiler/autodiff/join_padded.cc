// One pattern, on a sum of two paddings.
#include "compiler/autodiff/join_padded.h"

#include "dialects/nn/dialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

namespace partita::autodiff {
namespace {

using llvm::SmallVector;
using mlir::Value;

// A tensor padded with zeros along one dimension only.
struct Padded {
  mutable nn::PadOp op;
  int64_t dim = 0;

  int64_t begin() const { return op.getLow()[dim]; }
  int64_t end() const {
    return begin() + op.getInput().getType().getDimSize(dim);
  }
};

std::optional<Padded> padded(Value value) {
  auto op = value.getDefiningOp<nn::PadOp>();
  if (!op || !op->hasOneUse() || op.getMode() != nn::PadMode::constant ||
      !mlir::matchPattern(op.getValue(), mlir::m_AnyZeroFloat()))
    return std::nullopt;
  SmallVector<int64_t> dims;
  for (int64_t i = 0; i < op.getType().getRank(); ++i)
    if (op.getLow()[i] != 0 || op.getHigh()[i] != 0) dims.push_back(i);
  if (dims.size() != 1) return std::nullopt;
  return Padded{op, dims[0]};
}

void addParts(Value value, int64_t dim, SmallVector<Value>& parts) {
  auto joined = value.getDefiningOp<nn::ConcatOp>();
  if (joined && joined->hasOneUse() &&
      static_cast<int64_t>(joined.getAxis()) == dim)
    parts.append(joined.getInputs().begin(), joined.getInputs().end());
  else
    parts.push_back(value);
}

struct JoinPadded : mlir::OpRewritePattern<mlir::arith::AddFOp> {
  using OpRewritePattern::OpRewritePattern;

  mlir::LogicalResult matchAndRewrite(
      mlir::arith::AddFOp add, mlir::PatternRewriter& rewriter) const override {
    std::optional<Padded> first = padded(add.getLhs()),
                          second = padded(add.getRhs());
    if (!first || !second || first->dim != second->dim) return mlir::failure();
    if (first->begin() > second->begin()) std::swap(first, second);
    if (first->end() != second->begin()) return mlir::failure();
    const int64_t dim = first->dim;
    SmallVector<Value> parts;
    addParts(first->op.getInput(), dim, parts);
    addParts(second->op.getInput(), dim, parts);
    auto whole = mlir::cast<mlir::RankedTensorType>(add.getType());
    SmallVector<int64_t> shape(whole.getShape());
    shape[dim] = second->end() - first->begin();
    Value joined = nn::ConcatOp::create(rewriter, add.getLoc(),
                                        whole.clone(shape), parts, dim);
    if (shape[dim] == whole.getDimSize(dim))
      rewriter.replaceOp(add, joined);
    else
      rewriter.replaceOpWithNewOp<nn::PadOp>(
          add, whole, joined, first->op.getValue(), first->op.getLow(),
          second->op.getHigh());
    return mlir::success();
  }
};

}  // namespace

void populateJoinPaddedPatterns(mlir::RewritePatternSet& patterns) {
  patterns.add<JoinPadded>(patterns.getContext());
}

}  // namespace partita::autodiff
