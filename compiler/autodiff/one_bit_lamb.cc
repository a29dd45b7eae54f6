// Implements the formulas of the header, in its order.
#include "compiler/autodiff/one_bit_lamb.h"

#include <cmath>

namespace partita::autodiff {
namespace {

using mlir::Value;
using mlir::arith::CmpFPredicate;

constexpr double kMinFactor = 0.5, kMaxFactor = 4, kMaxChange = 0.1;

Value scaleBy(nn::MathBuilder& math, Value x, Value scalar) {
  return math.multiply(x,
                       math.broadcast(scalar, nn::MathBuilder::typeOf(x), {}));
}

Value smaller(nn::MathBuilder& math, Value x, Value y) {
  return math.select(math.compare(CmpFPredicate::OLT, x, y), x, y);
}

Value larger(nn::MathBuilder& math, Value x, Value y) {
  return math.select(math.compare(CmpFPredicate::OGT, x, y), x, y);
}

Value greatest(nn::MathBuilder& math, Value x) {
  const int64_t rank = nn::MathBuilder::typeOf(x).getRank();
  return rank == 0 ? x
                   : math.reduce(nn::ReduceKind::max, x,
                                 llvm::to_vector(llvm::seq<int64_t>(0, rank)));
}

}  // namespace

llvm::SmallVector<Value> buildOneBitLamb(nn::MathBuilder& math,
                                         const Optimizer& optimizer, Value x,
                                         Value m, llvm::ArrayRef<Value> states,
                                         const StepScalars& scalars) {
  const auto type = nn::MathBuilder::typeOf(x);
  Value zero = math.constant(type, 0);
  Value m_before = states[0], v = states[1], c = states[3];
  const auto scalar = nn::MathBuilder::typeOf(c);
  Value first =
      math.compare(CmpFPredicate::OEQ, states[4], math.constant(scalar, 0));
  Value f_before = math.select(first, math.constant(scalar, 1), states[4]);
  Value w_before = math.select(
      math.broadcast(
          first, mlir::RankedTensorType::get(type.getShape(), math.i1()), {}),
      v, states[2]);

  Value g =
      math.divide(math.subtract(m, math.multiply(m_before, optimizer.beta1)),
                  1 - optimizer.beta1);
  Value w = math.add(math.multiply(w_before, optimizer.beta2),
                     math.multiply(math.multiply(g, g), 1 - optimizer.beta2));
  Value frozen =
      math.add(scaleBy(math, math.sqrt(v), scalars.second_correction),
               optimizer.epsilon);
  Value fresh = math.add(scaleBy(math, math.sqrt(w), scalars.fresh_correction),
                         optimizer.epsilon);
  Value moves = math.compare(CmpFPredicate::OGT, v, zero);
  Value f =
      greatest(math, math.select(moves, math.divide(frozen, fresh), zero));
  f = larger(math, f, math.multiply(f_before, 1 - kMaxChange));
  f = smaller(math, f, math.multiply(f_before, 1 + kMaxChange));
  f = larger(math, f, math.constant(scalar, kMinFactor));
  f = smaller(math, f, math.constant(scalar, kMaxFactor));

  Value u = math.select(
      moves, math.divide(scaleBy(math, m, scalars.first_correction), frozen),
      zero);
  if (optimizer.weight_decay != 0)
    u = math.add(u, math.multiply(x, optimizer.weight_decay));
  const double whole =
      1 - std::pow(kRatioBeta, static_cast<double>(optimizer.warmup));
  Value rate = math.multiply(scalars.learning_rate,
                             math.multiply(f, math.divide(c, whole)));
  return {math.subtract(x, scaleBy(math, u, rate)), w, f};
}

}  // namespace partita::autodiff
