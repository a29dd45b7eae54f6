#include "compiler/simplify/activation_match.h"

#include <cmath>

#include "compiler/simplify/view.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace partita::simplify {
namespace {

using mlir::Value;
using nn::ExpertActivation;
namespace arith = mlir::arith;
namespace math = mlir::math;

// The other operand of a product or sum with this splat constant.
template <typename Op>
Value without(Value value, double constant) {
  auto op = value.getDefiningOp<Op>();
  if (!op) return {};
  for (unsigned i : {0u, 1u}) {
    const std::optional<double> found = splatOf(op->getOperand(i));
    if (found && std::abs(*found - constant) < 1e-6 * std::abs(constant))
      return op->getOperand(1 - i);
  }
  return {};
}

// The x of 1 / (1 + exp(-x)).
Value inSigmoid(Value value) {
  auto quotient = value.getDefiningOp<arith::DivFOp>();
  if (!quotient || splatOf(quotient.getLhs()) != 1.0) return {};
  Value sum = without<arith::AddFOp>(quotient.getRhs(), 1);
  auto exp = sum ? sum.getDefiningOp<math::ExpOp>() : math::ExpOp();
  auto negated =
      exp ? exp.getOperand().getDefiningOp<arith::NegFOp>() : arith::NegFOp();
  return negated ? negated.getOperand() : Value();
}

// The x of 1 + erf(x / sqrt(2)).
Value inErf(Value value) {
  Value erf = without<arith::AddFOp>(value, 1);
  auto op = erf ? erf.getDefiningOp<math::ErfOp>() : math::ErfOp();
  if (!op) return {};
  if (Value x = without<arith::MulFOp>(op.getOperand(), std::sqrt(0.5)))
    return x;
  auto quotient = op.getOperand().getDefiningOp<arith::DivFOp>();
  const std::optional<double> divisor =
      quotient ? splatOf(quotient.getRhs()) : std::nullopt;
  return divisor && std::abs(*divisor - std::sqrt(2.0)) < 1e-6
             ? quotient.getLhs()
             : Value();
}

// Half of x times 1 + erf(x / sqrt(2)), in any order of the products.
std::optional<Activated> matchGelu(arith::MulFOp product) {
  for (unsigned i : {0u, 1u}) {
    const Value a = product->getOperand(i), b = product->getOperand(1 - i);
    // (x * 0.5) * (1 + erf)
    Value x = inErf(b);
    if (x && without<arith::MulFOp>(a, 0.5) == x)
      return Activated{ExpertActivation::gelu, x};
    // x * ((1 + erf) * 0.5)
    Value halved = without<arith::MulFOp>(b, 0.5);
    if (halved && inErf(halved) == a)
      return Activated{ExpertActivation::gelu, a};
    // (x * (1 + erf)) * 0.5
    if (splatOf(b) != 0.5) continue;
    auto inner = a.getDefiningOp<arith::MulFOp>();
    for (unsigned j : {0u, 1u}) {
      if (inner && inErf(inner->getOperand(j)) == inner->getOperand(1 - j))
        return Activated{ExpertActivation::gelu, inner->getOperand(1 - j)};
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Activated> matchActivation(Value value) {
  if (auto product = value.getDefiningOp<arith::MulFOp>()) {
    for (unsigned i : {0u, 1u})
      if (inSigmoid(product->getOperand(i)) == product->getOperand(1 - i))
        return Activated{ExpertActivation::silu, product->getOperand(1 - i)};
    return matchGelu(product);
  }
  if (auto maximum = value.getDefiningOp<arith::MaximumFOp>())
    for (unsigned i : {0u, 1u})
      if (splatOf(maximum->getOperand(i)) == 0.0)
        return Activated{ExpertActivation::relu, maximum->getOperand(1 - i)};
  return std::nullopt;
}

}  // namespace partita::simplify
