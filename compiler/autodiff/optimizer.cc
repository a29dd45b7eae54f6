// Implements the formulas as in the papers.
#include "compiler/autodiff/optimizer.h"

#include <cmath>

#include "compiler/autodiff/one_bit_lamb.h"
#include "compiler/autodiff/update_function.h"
#include "compiler/autodiff/zero_one_adam.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace partita::autodiff {
namespace {

using llvm::SmallVector;
using mlir::Value;

Value scaleBy(nn::MathBuilder& math, Value x, Value scalar) {
  return math.multiply(x,
                       math.broadcast(scalar, nn::MathBuilder::typeOf(x), {}));
}

Value sumOfSquares(nn::MathBuilder& math, Value x) {
  SmallVector<int64_t> dims;
  for (int64_t i = 0; i < nn::MathBuilder::typeOf(x).getRank(); ++i)
    dims.push_back(i);
  Value squares = math.multiply(x, x);
  return dims.empty() ? squares
                      : math.reduce(nn::ReduceKind::sum, squares, dims);
}

// beta * old + (1 - beta) * x
Value average(nn::MathBuilder& math, Value old, Value x, double beta) {
  return math.add(math.multiply(old, beta), math.multiply(x, 1 - beta));
}

SmallVector<Value> sgd(nn::MathBuilder& math, const Optimizer& optimizer,
                       Value p, Value g, llvm::ArrayRef<Value> states,
                       const StepScalars& scalars) {
  if (optimizer.weight_decay != 0)
    g = math.add(g, math.multiply(p, optimizer.weight_decay));
  SmallVector<Value> result(1);
  if (!states.empty()) {
    Value velocity = math.add(math.multiply(states[0], optimizer.momentum), g);
    g = optimizer.nesterov
            ? math.add(g, math.multiply(velocity, optimizer.momentum))
            : velocity;
    result.push_back(velocity);
  }
  result[0] = math.subtract(p, scaleBy(math, g, scalars.learning_rate));
  return result;
}

// Adam, AdamW and LAMB share the computation of moments.
SmallVector<Value> adam(nn::MathBuilder& math, const Optimizer& optimizer,
                        Value p, Value g, llvm::ArrayRef<Value> states,
                        const StepScalars& scalars) {
  const double decay = optimizer.weight_decay;
  if (optimizer.kind == OptimizerKind::kAdam && decay != 0)
    g = math.add(g, math.multiply(p, decay));
  Value m = average(math, states[0], g, optimizer.beta1);
  Value v = average(math, states[1], math.multiply(g, g), optimizer.beta2);
  Value denominator =
      math.add(scaleBy(math, math.sqrt(v), scalars.second_correction),
               optimizer.epsilon);
  Value direction =
      math.divide(scaleBy(math, m, scalars.first_correction), denominator);
  // After an exchange of one bit per element, m is not 0 where no gradient was.
  if (optimizer.kind == OptimizerKind::kZeroOneVariance)
    direction = zeroWhereZero(math, v, direction);
  if (optimizer.kind != OptimizerKind::kAdam && decay != 0)
    direction = math.add(direction, math.multiply(p, decay));
  Value rate = scalars.learning_rate;
  SmallVector<Value> averages;
  if (optimizer.kind == OptimizerKind::kLamb ||
      optimizer.kind == OptimizerKind::kOneBitLambWarmup) {
    // |p| / |direction|, 1 where either is zero.
    Value size = math.sqrt(sumOfSquares(math, p)),
          length = math.sqrt(sumOfSquares(math, direction));
    Value zero = math.constant(nn::MathBuilder::typeOf(size), 0);
    Value one = math.constant(nn::MathBuilder::typeOf(size), 1);
    using mlir::arith::CmpFPredicate;
    Value ratio = math.divide(
        size, math.select(math.compare(CmpFPredicate::OGT, length, zero),
                          length, one));
    Value usable = math.andInt(math.compare(CmpFPredicate::OGT, size, zero),
                               math.compare(CmpFPredicate::OGT, length, zero));
    ratio = math.select(usable, ratio, one);
    rate = math.multiply(rate, ratio);
    if (optimizer.kind == OptimizerKind::kOneBitLambWarmup)
      averages = {average(math, states[2], ratio, kRatioBeta)};
  }
  SmallVector<Value> result = {math.subtract(p, scaleBy(math, direction, rate)),
                               m, v};
  result.append(averages);
  return result;
}

// Uses the second moment of the warm-up. Elements whose second moment is 0 do
// not move, since one bit cannot represent a zero momentum.
Value oneBitAdam(nn::MathBuilder& math, const Optimizer& optimizer, Value p,
                 Value m, Value v, const StepScalars& scalars) {
  Value zero = math.constant(nn::MathBuilder::typeOf(v), 0);
  Value denominator =
      math.add(scaleBy(math, math.sqrt(v), scalars.second_correction),
               optimizer.epsilon);
  Value direction = math.select(
      math.compare(mlir::arith::CmpFPredicate::OGT, v, zero),
      math.divide(scaleBy(math, m, scalars.first_correction), denominator),
      zero);
  if (optimizer.weight_decay != 0)
    direction = math.add(direction, math.multiply(p, optimizer.weight_decay));
  return math.subtract(p, scaleBy(math, direction, scalars.learning_rate));
}

SmallVector<Value> adafactor(nn::MathBuilder& math, const Optimizer& optimizer,
                             const Factored& factored, Value p, Value g,
                             llvm::ArrayRef<Value> states,
                             const StepScalars& scalars) {
  SmallVector<Value> result =
      buildAdafactor(math, factored, g, states, scalars.decay);
  Value direction = result[0];
  if (optimizer.weight_decay != 0)
    direction = math.add(direction, math.multiply(p, optimizer.weight_decay));
  result[0] = math.subtract(p, scaleBy(math, direction, scalars.learning_rate));
  return result;
}

}  // namespace

SmallVector<State> Optimizer::states(const Factored& factored) const {
  switch (kind) {
    case OptimizerKind::kSgd:
      if (momentum == 0) return {};
      return {{"momentum"}};
    case OptimizerKind::kAdafactor:
      if (factored.rows.empty()) return {{"exp_avg_sq"}};
      return {{"exp_avg_sq_row", factored.columns, factored.model_column},
              {"exp_avg_sq_col", factored.rows, factored.model_row}};
    case OptimizerKind::kOneBitAdam:
      return {{"exp_avg_sq", {}, -1, /*is_frozen=*/true}};
    case OptimizerKind::kOneBitLambWarmup:
      return {{"exp_avg"},
              {"exp_avg_sq"},
              {"ratio", {}, -1, /*is_frozen=*/false, /*is_scalar=*/true}};
    case OptimizerKind::kOneBitLamb:
      return {{"exp_avg", {}, -1, /*is_frozen=*/true},
              {"exp_avg_sq", {}, -1, /*is_frozen=*/true},
              {"fresh_exp_avg_sq"},
              {"ratio", {}, -1, /*is_frozen=*/true, /*is_scalar=*/true},
              {"ratio_factor",
               {},
               -1,
               /*is_frozen=*/false,
               /*is_scalar=*/true}};
    case OptimizerKind::kZeroOneVariance:
    case OptimizerKind::kZeroOneExchange:
    case OptimizerKind::kZeroOneLocal:
      return {{kLocalMomentum}, {"exp_avg_sq"}};
    case OptimizerKind::kAdam:
    case OptimizerKind::kAdamW:
    case OptimizerKind::kLamb:
      break;
  }
  return {{"exp_avg"}, {"exp_avg_sq"}};
}

void buildCorrections(nn::MathBuilder& math, mlir::OpBuilder& builder,
                      const Optimizer& optimizer, Value step, Value squares,
                      StepScalars& scalars) {
  if (optimizer.kind == OptimizerKind::kSgd) return;
  Value t = math.toFloat(step, builder.getF32Type());
  const auto type = nn::MathBuilder::typeOf(t);
  if (optimizer.kind == OptimizerKind::kAdafactor) {
    scalars.decay = buildAdafactorDecay(math, t);
    return;
  }
  Value one = math.constant(type, 1);
  // 1 - beta^t, without cancellation if beta^t is close to 1.
  const auto restOf = [&](Value steps, double beta) -> Value {
    return mlir::arith::NegFOp::create(
        builder, t.getLoc(),
        mlir::math::ExpM1Op::create(builder, t.getLoc(),
                                    math.multiply(steps, std::log(beta))));
  };
  const auto rest = [&](double beta) { return restOf(t, beta); };
  scalars.first_correction = math.divide(one, rest(optimizer.beta1));
  if (squares) {
    scalars.second_correction = math.rsqrt(
        restOf(math.toFloat(squares, builder.getF32Type()), optimizer.beta2));
    return;
  }
  scalars.second_correction =
      exchangesMomenta(optimizer.kind)
          ? math.constant(type, 1 / std::sqrt(1 - std::pow(optimizer.beta2,
                                                           optimizer.warmup)))
          : math.rsqrt(rest(optimizer.beta2));
  if (optimizer.kind == OptimizerKind::kOneBitLamb)
    scalars.fresh_correction = math.rsqrt(rest(optimizer.beta2));
}

Value buildMomentum(nn::MathBuilder& math, const Optimizer& optimizer,
                    Value momentum, Value gradient) {
  return average(math, momentum, gradient, optimizer.beta1);
}

SmallVector<Value> buildUpdate(nn::MathBuilder& math,
                               const Optimizer& optimizer,
                               const Factored& factored, Value parameter,
                               Value gradient, llvm::ArrayRef<Value> states,
                               const StepScalars& given) {
  StepScalars scalars = given;
  if (optimizer.rate_scale != 1)
    scalars.learning_rate =
        math.multiply(given.learning_rate, optimizer.rate_scale);
  switch (optimizer.kind) {
    case OptimizerKind::kSgd:
      return sgd(math, optimizer, parameter, gradient, states, scalars);
    case OptimizerKind::kAdafactor:
      return adafactor(math, optimizer, factored, parameter, gradient, states,
                       scalars);
    case OptimizerKind::kOneBitAdam:
      return {
          oneBitAdam(math, optimizer, parameter, gradient, states[0], scalars)};
    case OptimizerKind::kOneBitLamb:
      return buildOneBitLamb(math, optimizer, parameter, gradient, states,
                             scalars);
    case OptimizerKind::kAdam:
    case OptimizerKind::kAdamW:
    case OptimizerKind::kLamb:
    case OptimizerKind::kOneBitLambWarmup:
    case OptimizerKind::kZeroOneVariance:
    case OptimizerKind::kZeroOneExchange:
    case OptimizerKind::kZeroOneLocal:
      break;
  }
  return adam(math, optimizer, parameter, gradient, states, scalars);
}

}  // namespace partita::autodiff
