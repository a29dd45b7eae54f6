// Decompositions of the composites into contractions, reductions, data
// movement, arith and math.

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

// x * scale + bias. `scale` and `bias` may be null; they have the dimensions
// `dims` of x.
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

Results CrossEntropyOp::decompose(mlir::OpBuilder& builder) {
  MathBuilder b(builder, getLoc());
  const Value z = b.widen(getLogits());
  const RankedTensorType type = b.typeOf(z);
  const int64_t axis = type.getRank() - 1, classes = type.getDimSize(axis);
  const Value shifted =
      b.subtract(z, b.spread(b.reduce(ReduceKind::max, z, axis), z, axis));
  const Value total = b.log(b.reduce(ReduceKind::sum, b.exp(shifted), axis));

  // The target's logit at each position; the gather clamps targets into range.
  // The positions keep separate dimensions, so that each can be divided.
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

Results DequantizeOp::decompose(mlir::OpBuilder& builder) {
  MathBuilder b(builder, getLoc());
  const mlir::Type i32 = builder.getI32Type();
  RankedTensorType packed = getPacked().getType();
  SmallVector<int64_t> shape(packed.getShape());
  const SmallVector<int64_t> dims =
      llvm::to_vector(llvm::seq<int64_t>(0, packed.getRank()));
  shape.push_back(2);
  const auto pairs = RankedTensorType::get(shape, i32);
  const Value bytes = b.broadcast(
      arith::ExtUIOp::create(builder, getLoc(), packed.clone(i32), getPacked()),
      pairs, dims);
  // 0 for the low bits, 4 for the high bits.
  const Value shifts = b.multiplyInt(b.iota(pairs, packed.getRank()), 4);
  const Value integers = b.reshape(b.andInt(b.shiftRight(bytes, shifts), 15),
                                   getType().getShape());
  const Value scales = b.widen(getScale());
  const mlir::Type element = b.typeOf(scales).getElementType();
  const RankedTensorType wide = RankedTensorType(getType()).clone(element);
  const ArrayRef<int64_t> groups = ArrayRef<int64_t>(dims).drop_back();
  const Value steps = b.toFloat(integers, element);
  const Value zero =
      getZero() ? b.broadcast(b.toFloat(getZero(), element), wide, groups)
                : b.constant(wide, 8);
  const Value scale = b.broadcast(scales, wide, groups);
  return SmallVector<Value>{
      b.narrow(b.multiply(scale, b.subtract(steps, zero)), getType())};
}

}  // namespace partita::nn
