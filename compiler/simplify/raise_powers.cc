// Powers with simple exponents become products and roots, exact divisions
// become products.
#include <cmath>

#include "compiler/simplify/raise_patterns.h"
#include "compiler/simplify/view.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace partita::simplify {
namespace {

using mlir::LogicalResult;
using mlir::PatternRewriter;
using mlir::Value;
namespace arith = mlir::arith;
namespace math = mlir::math;

// Largest exponent written as products.
constexpr int kMaxProducts = 4;

LogicalResult raisePower(math::PowFOp op, PatternRewriter& rewriter) {
  const std::optional<double> exponent = splatOf(op.getRhs());
  if (!exponent || !mlir::isa<mlir::RankedTensorType>(op.getType()))
    return mlir::failure();
  const Value base = op.getLhs();
  if (*exponent == 0.5)
    return rewriter.replaceOpWithNewOp<math::SqrtOp>(op, base), mlir::success();
  if (*exponent == -0.5)
    return rewriter.replaceOpWithNewOp<math::RsqrtOp>(op, base),
           mlir::success();
  if (*exponent == -1) {
    const Value one = buildSplat(rewriter, op.getLoc(), tensorType(base), 1);
    return rewriter.replaceOpWithNewOp<arith::DivFOp>(op, one, base),
           mlir::success();
  }
  if (*exponent < 1 || *exponent > kMaxProducts ||
      *exponent != std::floor(*exponent))
    return mlir::failure();
  Value power = base;
  for (int i = 1; i < *exponent; ++i)
    power = arith::MulFOp::create(rewriter, op.getLoc(), power, base);
  return rewriter.replaceOp(op, power), mlir::success();
}

LogicalResult divisionToProduct(arith::DivFOp op, PatternRewriter& rewriter) {
  const std::optional<double> divisor = splatOf(op.getRhs());
  if (!divisor || !mlir::isa<mlir::RankedTensorType>(op.getType()))
    return mlir::failure();
  int exponent;
  // Within the exponents that every float type of 16 bits or more has.
  if (std::abs(std::frexp(*divisor, &exponent)) != 0.5 ||
      std::abs(exponent) > 14)
    return mlir::failure();
  const Value inverse =
      buildSplat(rewriter, op.getLoc(), tensorType(op), 1 / *divisor);
  return rewriter.replaceOpWithNewOp<arith::MulFOp>(op, op.getLhs(), inverse),
         mlir::success();
}

}  // namespace

void populateRaisePowers(mlir::RewritePatternSet& patterns) {
  patterns.add(raisePower);
  patterns.add(divisionToProduct);
}

}  // namespace partita::simplify
