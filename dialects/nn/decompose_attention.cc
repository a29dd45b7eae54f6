// Decompositions of attention and its gradient. They store the L x S matrix.
#include <limits>

#include "dialects/nn/dialect.h"
#include "dialects/nn/math_builder.h"

namespace partita::nn {
namespace {

using mlir::ArrayRef;
using mlir::FailureOr;
using mlir::RankedTensorType;
using mlir::SmallVector;
using mlir::Value;
namespace arith = mlir::arith;

using Results = FailureOr<SmallVector<Value>>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// [B, N, ...] as [B, G, N / G, ...]: the query heads of a key-value head share
// a batch index.
Value grouped(MathBuilder& b, Value x, int64_t groups) {
  const ArrayRef<int64_t> shape = b.typeOf(x).getShape();
  return b.reshape(x,
                   {shape[0], groups, shape[1] / groups, shape[2], shape[3]});
}

// [B, N, L, S]
struct Softmax {
  Value weights;
  Value tanh;  // tanh(score / softcap); null without a softcap
};

Value masked(MathBuilder& b, Value scores, int64_t causal_offset) {
  RankedTensorType type = b.typeOf(scores);
  const RankedTensorType positions =
      RankedTensorType::get({type.getDimSize(2), type.getDimSize(3)}, b.i64());
  const Value query = b.addInt(b.iota(positions, 0), causal_offset);
  const Value visible =
      b.compare(arith::CmpIPredicate::sle, b.iota(positions, 1), query);
  return b.select(b.broadcast(visible, type.clone(b.i1()), {2, 3}), scores,
                  b.constant(type, -kInfinity));
}

// Softmax of scale * q k^T, capped, biased and masked.
template <typename Op>
Softmax attentionSoftmax(MathBuilder& b, Op op) {
  const Value q = b.widen(op.getQ()), k = b.widen(op.getK());
  const ArrayRef<int64_t> q_shape = b.typeOf(q).getShape(),
                          k_shape = b.typeOf(k).getShape();
  Softmax softmax;
  Value scores =
      b.dotGeneral(grouped(b, q, k_shape[1]), k, {0, 1}, {0, 1}, 4, 3);
  scores = b.reshape(scores, {q_shape[0], q_shape[1], q_shape[2], k_shape[2]});
  scores = b.multiply(scores, op.getScale().convertToDouble());
  const double softcap = op.getSoftcap().convertToDouble();
  if (softcap > 0) {
    softmax.tanh = b.tanh(b.divide(scores, softcap));
    scores = b.multiply(softmax.tanh, softcap);
  }
  if (op.getBias())
    scores = b.add(scores, b.broadcast(b.widen(op.getBias()), b.typeOf(scores),
                                       {0, 1, 2, 3}));
  if (const std::optional<int64_t> offset = op.getCausalOffset())
    scores = masked(b, scores, *offset);
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
  softmax.weights = b.divide(exponentials, b.spread(divisor, scores, 3));
  return softmax;
}

// Sums x over the dimensions in which `type` has size 1 and x has more.
Value sumTo(MathBuilder& b, Value x, RankedTensorType type) {
  SmallVector<int64_t> dims;
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    if (type.getDimSize(dim) != b.typeOf(x).getDimSize(dim))
      dims.push_back(dim);
  }
  if (!dims.empty()) x = b.reduce(ReduceKind::sum, x, dims);
  return b.narrow(b.reshape(x, type.getShape()), type);
}

}  // namespace

Results AttentionOp::decompose(mlir::OpBuilder& builder) {
  MathBuilder b(builder, getLoc());
  const Value weights = attentionSoftmax(b, *this).weights, v = b.widen(getV());
  const Value result = b.dotGeneral(
      grouped(b, weights, b.typeOf(v).getDimSize(1)), v, {0, 1}, {0, 1}, 4, 2);
  return SmallVector<Value>{
      b.narrow(b.reshape(result, getType().getShape()), getType())};
}

Results AttentionGradOp::decompose(mlir::OpBuilder& builder) {
  MathBuilder b(builder, getLoc());
  const Softmax softmax = attentionSoftmax(b, *this);
  const Value q = b.widen(getQ()), k = b.widen(getK()), v = b.widen(getV()),
              result = b.widen(getResult()),
              result_grad = b.widen(getResultGrad());
  const RankedTensorType type = b.typeOf(softmax.weights);
  const int64_t groups = b.typeOf(k).getDimSize(1);
  const Value out = grouped(b, result_grad, groups);
  const Value v_grad = b.dotGeneral(grouped(b, softmax.weights, groups), out,
                                    {0, 1}, {0, 1}, {2, 3}, {2, 3});

  const Value weights_grad =
      b.reshape(b.dotGeneral(out, v, {0, 1}, {0, 1}, 4, 3), type.getShape());
  const Value mean =
      b.reduce(ReduceKind::sum, b.multiply(result, result_grad), 3);
  const Value biased =
      b.multiply(softmax.weights,
                 b.subtract(weights_grad, b.spread(mean, softmax.weights, 3)));
  Value scores = b.multiply(biased, getScale().convertToDouble());
  if (softmax.tanh)
    scores =
        b.multiply(scores, b.subtract(b.constant(type, 1),
                                      b.multiply(softmax.tanh, softmax.tanh)));
  scores = grouped(b, scores, groups);
  const Value q_grad = b.dotGeneral(scores, k, {0, 1}, {0, 1}, 4, 2);
  const Value k_grad = b.dotGeneral(scores, grouped(b, q, groups), {0, 1},
                                    {0, 1}, {2, 3}, {2, 3});
  SmallVector<Value> results = {
      b.narrow(b.reshape(q_grad, getQ().getType().getShape()),
               getQ().getType()),
      b.narrow(k_grad, getK().getType()), b.narrow(v_grad, getV().getType())};
  if (getBiasGrad()) results.push_back(sumTo(b, biased, getBias().getType()));
  return results;
}

}  // namespace partita::nn
