// Raises softmax and its logarithm from exponentials and sums, with or without
// subtracting the maximum first.
#include <limits>

#include "compiler/simplify/raise_patterns.h"
#include "compiler/simplify/view.h"
#include "dialects/nn/dialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace partita::simplify {
namespace {

using mlir::LogicalResult;
using mlir::PatternRewriter;
using mlir::Value;
namespace arith = mlir::arith;
namespace math = mlir::math;

// Matches the maximum over one dimension, optionally of it and -inf: reductions
// with an initial value are exported this way.
std::optional<Reduced> matchGuardedMax(View view,
                                       mlir::ArrayRef<int64_t> shape) {
  view = peel(view);
  if (auto guard = view.value.getDefiningOp<arith::MaximumFOp>()) {
    for (unsigned operand : {0u, 1u}) {
      const std::optional<double> floor =
          splatOf(guard->getOperand(1 - operand));
      if (floor && *floor == -std::numeric_limits<double>::infinity())
        return matchMax(operandOf(view, operand), shape);
    }
  }
  return matchMax(view, shape);
}

// Returns x if `shifted` is x - max(x) over `dim`, else `shifted`.
Value withoutMax(Value shifted, int64_t dim) {
  auto sub = shifted.getDefiningOp<arith::SubFOp>();
  if (!sub) return shifted;
  const std::optional<Reduced> max =
      matchGuardedMax(viewOf(sub.getRhs()), tensorType(shifted).getShape());
  return max && *max == Reduced{sub.getLhs(), {dim}} ? sub.getLhs() : shifted;
}

// Returns the dimension that `view` sums the exponential over, if it is such a
// sum.
std::optional<int64_t> dimOfSum(const View& view, Value exponential) {
  const std::optional<Reduced> sum =
      matchSum(view, tensorType(exponential).getShape());
  if (!sum || sum->input != exponential || sum->dims.size() != 1)
    return std::nullopt;
  return sum->dims.front();
}

class SoftmaxFromQuotient : public mlir::OpRewritePattern<arith::DivFOp> {
 public:
  SoftmaxFromQuotient(mlir::MLIRContext* context, mlir::Pass::Statistic& raised)
      : OpRewritePattern(context), raised_(raised) {}

  LogicalResult matchAndRewrite(arith::DivFOp op,
                                PatternRewriter& rewriter) const override {
    auto exponential = op.getLhs().getDefiningOp<math::ExpOp>();
    if (!exponential || !mlir::isa<mlir::RankedTensorType>(op.getType()))
      return mlir::failure();
    const std::optional<int64_t> dim =
        dimOfSum(viewOf(op.getRhs()), exponential);
    if (!dim) return mlir::failure();
    rewriter.replaceOpWithNewOp<nn::SoftmaxOp>(
        op, op.getType(), withoutMax(exponential.getOperand(), *dim), *dim);
    ++raised_;
    return mlir::success();
  }

 private:
  mlir::Pass::Statistic& raised_;
};

class LogSoftmaxFromDifference : public mlir::OpRewritePattern<arith::SubFOp> {
 public:
  LogSoftmaxFromDifference(mlir::MLIRContext* context,
                           mlir::Pass::Statistic& raised)
      : OpRewritePattern(context), raised_(raised) {}

  LogicalResult matchAndRewrite(arith::SubFOp op,
                                PatternRewriter& rewriter) const override {
    if (!mlir::isa<mlir::RankedTensorType>(op.getType()))
      return mlir::failure();
    const View log = peel(viewOf(op.getRhs()));
    if (!log.value.getDefiningOp<math::LogOp>()) return mlir::failure();
    const View sum = peel(operandOf(log, 0));
    auto reduce = sum.value.getDefiningOp<nn::ReduceOp>();
    auto exponential =
        reduce ? reduce.getInput().getDefiningOp<math::ExpOp>() : nullptr;
    if (!exponential || exponential.getOperand() != op.getLhs())
      return mlir::failure();
    const std::optional<int64_t> dim = dimOfSum(sum, exponential);
    if (!dim) return mlir::failure();
    rewriter.replaceOpWithNewOp<nn::SoftmaxOp>(
        op, op.getType(), withoutMax(op.getLhs(), *dim), *dim, /*log=*/true);
    ++raised_;
    return mlir::success();
  }

 private:
  mlir::Pass::Statistic& raised_;
};

}  // namespace

void populateRaiseSoftmax(mlir::RewritePatternSet& patterns,
                          mlir::Pass::Statistic& softmaxes) {
  patterns.add<SoftmaxFromQuotient, LogSoftmaxFromDifference>(
      patterns.getContext(), softmaxes);
}

}  // namespace partita::simplify
