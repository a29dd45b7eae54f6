// Rewrites powers with simple exponents as products and roots, and exact
// divisions as products.
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

// Largest exponent that is written as products.
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
  // The exponent must be representable in every float type of at least 16 bits.
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
