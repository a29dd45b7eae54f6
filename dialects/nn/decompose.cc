// Decompositions of the composites into contractions, reductions, data
// movement, arith and math.
#include <limits>

#include "dialects/nn/dialect.h"
#include "dialects/nn/math_builder.h"
#include "llvm/ADT/STLExtras.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace partita::nn {
namespace {

using mlir::ArrayRef;
using mlir::FailureOr;
using mlir::RankedTensorType;
using mlir::SmallVector;
using mlir::Value;
namespace arith = mlir::arith;
namespace math = mlir::math;

using Results = FailureOr<SmallVector<Value>>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

SmallVector<int64_t> dimsFrom(int64_t first, int64_t rank) {
  return llvm::to_vector(llvm::seq(first, rank));
}

int64_t elementsAlong(RankedTensorType type, ArrayRef<int64_t> dims) {
  int64_t count = 1;
  for (int64_t dim : dims) count *= type.getDimSize(dim);
  return count;
}

// The mean over `dims`, which are dropped.
Value mean(MathBuilder& b, Value x, ArrayRef<int64_t> dims) {
  const double count = elementsAlong(b.typeOf(x), dims);
  return b.divide(b.reduce(ReduceKind::sum, x, dims), count);
}

// x * scale + bias, where both may be absent and have the dimensions `dims` of
// x.
Value scaleAndShift(MathBuilder& b, Value x, Value scale, Value bias,
                    ArrayRef<int64_t> dims) {
  const RankedTensorType type = b.typeOf(x);
  if (scale) x = b.multiply(x, b.broadcast(b.widen(scale), type, dims));
  if (bias) x = b.add(x, b.broadcast(b.widen(bias), type, dims));
  return x;
}

}  // namespace

Results SoftmaxOp::decompose(mlir::OpBuilder& builder) {
  MathBuilder b(builder, getLoc());
  const int64_t axis = getAxis();
  const Value x = b.widen(getInput());
  const Value shifted =
      b.subtract(x, b.spread(b.reduce(ReduceKind::max, x, axis), x, axis));
  const Value exponentials = b.exp(shifted);
  const Value sum = b.reduce(ReduceKind::sum, exponentials, axis);
  const Value result = getLog()
                           ? b.subtract(shifted, b.spread(b.log(sum), x, axis))
                           : b.divide(exponentials, b.spread(sum, x, axis));
  return SmallVector<Value>{b.narrow(result, getType())};
}

Results LayerNormOp::decompose(mlir::OpBuilder& builder) {
  MathBuilder b(builder, getLoc());
  const Value x = b.widen(getInput());
  const SmallVector<int64_t> dims = dimsFrom(getAxis(), getType().getRank());
  const Value centered = b.subtract(x, b.spread(mean(b, x, dims), x, dims));
  const Value variance = mean(b, b.multiply(centered, centered), dims);
  const Value factor = b.rsqrt(b.add(variance, getEpsilon().convertToDouble()));
  const Value normal = b.multiply(centered, b.spread(factor, x, dims));
  return SmallVector<Value>{b.narrow(
      scaleAndShift(b, normal, getScale(), getBias(), dims), getType())};
}

Results RmsNormOp::decompose(mlir::OpBuilder& builder) {
  MathBuilder b(builder, getLoc());
  const Value x = b.widen(getInput());
  const SmallVector<int64_t> dims = dimsFrom(getAxis(), getType().getRank());
  const Value factor = b.rsqrt(
      b.add(mean(b, b.multiply(x, x), dims), getEpsilon().convertToDouble()));
  const Value normal = b.multiply(x, b.spread(factor, x, dims));
  return SmallVector<Value>{
      b.narrow(scaleAndShift(b, normal, getScale(), {}, dims), getType())};
}

Results BatchNormOp::decompose(mlir::OpBuilder& builder) {
  MathBuilder b(builder, getLoc());
  const Value x = b.widen(getInput());
  const int64_t feature = getFeature();
  SmallVector<int64_t> others = dimsFrom(0, b.typeOf(x).getRank());
  others.erase(others.begin() + feature);

  Value batch_mean = b.widen(getMean()), variance = b.widen(getVariance());
  SmallVector<Value> statistics;
  if (getTraining()) {
    const Value old_mean = batch_mean, old_variance = variance;
    batch_mean = mean(b, x, others);
    const Value centered = b.subtract(x, b.spread(batch_mean, x, others));
    variance = mean(b, b.multiply(centered, centered), others);
    const double n = elementsAlong(b.typeOf(x), others),
                 momentum = getMomentum().convertToDouble();
    const Value estimate = getUnbiased()
                               ? b.multiply(variance, n / std::max(n - 1, 1.0))
                               : variance;
    for (auto [old, now] :
         {std::pair(old_mean, batch_mean), std::pair(old_variance, estimate)}) {
      const Value moved =
          b.add(b.multiply(old, 1 - momentum), b.multiply(now, momentum));
      statistics.push_back(b.narrow(moved, getMean().getType()));
    }
  }
  const Value centered = b.subtract(x, b.spread(batch_mean, x, others));
  const Value factor = b.rsqrt(b.add(variance, getEpsilon().convertToDouble()));
  const Value normal = b.multiply(centered, b.spread(factor, x, others));
  SmallVector<Value> results = {
      b.narrow(scaleAndShift(b, normal, getScale(), getBias(), feature),
               getResult().getType())};
  llvm::append_range(results, statistics);
  return results;
}

// scale * q k^T, capped, biased and masked: [B, N, L, S].
static Value attentionScores(MathBuilder& b, AttentionOp op) {
  const Value q = b.widen(op.getQ()), k = b.widen(op.getK());
  const ArrayRef<int64_t> q_shape = b.typeOf(q).getShape(),
                          k_shape = b.typeOf(k).getShape();
  const int64_t heads = q_shape[1], groups = k_shape[1];
  // Query heads of one key-value head share its batch entry.
  const Value grouped = b.reshape(
      q, {q_shape[0], groups, heads / groups, q_shape[2], q_shape[3]});
  Value scores = b.dotGeneral(grouped, k, {0, 1}, {0, 1}, 4, 3);
  scores = b.reshape(scores, {q_shape[0], heads, q_shape[2], k_shape[2]});
  scores = b.multiply(scores, op.getScale().convertToDouble());
  const double softcap = op.getSoftcap().convertToDouble();
  if (softcap > 0)
    scores = b.multiply(b.tanh(b.divide(scores, softcap)), softcap);
  RankedTensorType type = b.typeOf(scores);
  if (op.getBias())
    scores =
        b.add(scores, b.broadcast(b.widen(op.getBias()), type, {0, 1, 2, 3}));
  if (const std::optional<int64_t> offset = op.getCausalOffset()) {
    const RankedTensorType positions = RankedTensorType::get(
        {type.getDimSize(2), type.getDimSize(3)}, b.i64());
    const Value query = b.addInt(b.iota(positions, 0), *offset);
    const Value visible =
        b.compare(arith::CmpIPredicate::sle, b.iota(positions, 1), query);
    scores = b.select(b.broadcast(visible, type.clone(b.i1()), {2, 3}), scores,
                      b.constant(type, -kInfinity));
  }
  return scores;
}

Results AttentionOp::decompose(mlir::OpBuilder& builder) {
  MathBuilder b(builder, getLoc());
  const Value scores = attentionScores(b, *this), v = b.widen(getV());
  const ArrayRef<int64_t> shape = b.typeOf(scores).getShape(),
                          v_shape = b.typeOf(v).getShape();
  // A row of -inf is shifted by 0 and divided by 1: it gives zeros, not NaN.
  const Value highest = b.reduce(ReduceKind::max, scores, 3);
  const Value sees_none = b.compare(arith::CmpFPredicate::OEQ, highest,
                                    b.constant(b.typeOf(highest), -kInfinity));
  const Value shift =
      b.select(sees_none, b.constant(b.typeOf(highest), 0), highest);
  const Value exponentials =
      b.exp(b.subtract(scores, b.spread(shift, scores, 3)));
  const Value sum = b.reduce(ReduceKind::sum, exponentials, 3);
  const Value divisor = b.select(sees_none, b.constant(b.typeOf(sum), 1), sum);
  const Value weights = b.divide(exponentials, b.spread(divisor, scores, 3));

  const int64_t groups = v_shape[1];
  const Value grouped = b.reshape(
      weights, {shape[0], groups, shape[1] / groups, shape[2], shape[3]});
  const Value result = b.dotGeneral(grouped, v, {0, 1}, {0, 1}, 4, 2);
  return SmallVector<Value>{
      b.narrow(b.reshape(result, getType().getShape()), getType())};
}

Results CrossEntropyOp::decompose(mlir::OpBuilder& builder) {
  MathBuilder b(builder, getLoc());
  const Value z = b.widen(getLogits());
  const RankedTensorType type = b.typeOf(z);
  const int64_t axis = type.getRank() - 1, classes = type.getDimSize(axis);
  const Value shifted =
      b.subtract(z, b.spread(b.reduce(ReduceKind::max, z, axis), z, axis));
  const Value total = b.log(b.reduce(ReduceKind::sum, b.exp(shifted), axis));

  // The target's logit, one per position; the gather clamps targets into range.
  // Positions keep their dimensions, so that each can be divided.
  SmallVector<int64_t> one_each(b.typeOf(total).getShape());
  one_each.push_back(1);
  const Value target_logit =
      b.gatherPerRow(shifted, b.reshape(getTargets(), one_each));

  const double smoothing = getLabelSmoothing().convertToDouble();
  Value loss = b.multiply(b.subtract(total, target_logit), 1 - smoothing);
  if (smoothing > 0) {
    const Value average = b.divide(b.reduce(ReduceKind::sum, shifted, axis),
                                   static_cast<double>(classes));
    loss = b.add(loss, b.multiply(b.subtract(total, average), smoothing));
  }
  const Value ignored =
      b.compare(arith::CmpIPredicate::eq, getTargets(),
                b.constantInt(getTargets().getType(),
                              static_cast<int64_t>(getIgnoreIndex())));
  loss = b.select(ignored, b.constant(b.typeOf(loss), 0), loss);
  return SmallVector<Value>{b.narrow(loss, getType())};
}

}  // namespace partita::nn
