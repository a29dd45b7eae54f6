// Sums are divided by constants, so that the losses of microbatches add up.
#include "frontends/distillation/distance.h"

namespace partita::distillation {
namespace {

using mlir::RankedTensorType;
using mlir::Value;
using nn::MathBuilder;

// torch's cosine_embedding_loss adds this to squared norms.
constexpr double kCosineEpsilon = 1e-12;

Value sumOfAll(MathBuilder& math, Value x) {
  llvm::SmallVector<int64_t> dims;
  for (int64_t i = 0; i < MathBuilder::typeOf(x).getRank(); ++i)
    dims.push_back(i);
  return dims.empty() ? x : math.reduce(nn::ReduceKind::sum, x, dims);
}

Value sumOfRows(MathBuilder& math, Value x) {
  return math.reduce(nn::ReduceKind::sum, x,
                     {MathBuilder::typeOf(x).getRank() - 1});
}

int64_t positionsOf(RankedTensorType type) {
  return type.getNumElements() / type.getShape().back();
}

// Per position, log(sum(exp(y))) - mean(y): the cross-entropy with a target
// that is spread over all classes.
Value entropyToUniform(mlir::OpBuilder& builder, mlir::Location loc, Value y) {
  const RankedTensorType type = MathBuilder::typeOf(y);
  const auto shape = type.getShape().drop_back();
  MathBuilder math(builder, loc);
  const Value targets =
      math.constantInt(RankedTensorType::get(shape, math.i64()), 0);
  return nn::CrossEntropyOp::create(
      builder, loc, RankedTensorType::get(shape, builder.getF32Type()), y,
      targets, builder.getI64IntegerAttr(-1), builder.getF64FloatAttr(1));
}

}  // namespace

// With u = log(sum(exp(y))) - mean(y), which is computed as a whole and has a
// gradient of its own, for y = s / T and z = t / T:
//   KL = sum(p * (log p - log q)) = sum((p - 1 / V) * (z - y)) + u(y) - u(z).
Value divergence(mlir::OpBuilder& builder, mlir::Location loc, Value student,
                 Value teacher, double temperature) {
  MathBuilder math(builder, loc);
  const Value y = math.divide(math.widen(student), temperature);
  const Value z = math.divide(math.widen(teacher), temperature);
  const RankedTensorType type = MathBuilder::typeOf(y);
  const double classes = static_cast<double>(type.getShape().back());
  const Value p = nn::SoftmaxOp::create(
      builder, loc, type, z, builder.getI64IntegerAttr(type.getRank() - 1));
  const Value product =
      math.multiply(math.add(p, -1 / classes), math.subtract(z, y));
  const Value per_position =
      math.add(sumOfRows(math, product),
               math.subtract(entropyToUniform(builder, loc, y),
                             entropyToUniform(builder, loc, z)));
  return math.multiply(
      sumOfAll(math, per_position),
      temperature * temperature / static_cast<double>(positionsOf(type)));
}

Value hiddenDistance(mlir::OpBuilder& builder, mlir::Location loc,
                     Value student, Value teacher, HiddenLoss loss) {
  MathBuilder math(builder, loc);
  const Value s = math.widen(student), t = math.widen(teacher);
  const RankedTensorType type = MathBuilder::typeOf(s);
  if (loss == HiddenLoss::kMse) {
    const Value difference = math.subtract(s, t);
    return math.divide(sumOfAll(math, math.multiply(difference, difference)),
                       static_cast<double>(type.getNumElements()));
  }
  const auto square = [&](Value x) {
    return math.add(sumOfRows(math, math.multiply(x, x)), kCosineEpsilon);
  };
  const Value cosine =
      math.multiply(sumOfRows(math, math.multiply(s, t)),
                    math.rsqrt(math.multiply(square(s), square(t))));
  const Value total = sumOfAll(math, math.add(math.multiply(cosine, -1), 1));
  return math.divide(total, static_cast<double>(positionsOf(type)));
}

}  // namespace partita::distillation
