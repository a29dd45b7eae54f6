// Decompositions of attention and its gradient. They store the L x S matrix.
#include <limits>

#include "dialects/nn/attention_mask.h"
#include "dialects/nn/dialect.h"
#include "dialects/nn/math_builder.h"

namespace partita::nn {
namespace {

using mlir::ArrayRef;
using mlir::FailureOr;
using mlir::RankedTensorType;
using mlir::SmallVector;
using mlir::Value;
using mlir::arith::CmpIPredicate;
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
  Value lse;   // [B, N, L]; null if the weights follow from it
};

// Adds a mask to `visible`, which may be null.
Value both(MathBuilder& b, Value visible, Value mask) {
  return visible ? b.andInt(visible, mask) : mask;
}

// The entries of the table of blocks for each query and key. `type` is the type
// of the scores.
template <typename Op>
Value visibleBlocks(MathBuilder& b, Op op, RankedTensorType type) {
  const mlir::DenseIntElementsAttr blocks = *op.getBlocks();
  const llvm::ArrayRef<int64_t> shape = blocks.getType().getShape();
  const int64_t size = *op.getBlockSize(), heads = shape[0], rows = shape[1],
                columns = shape[2], queries = type.getDimSize(2),
                keys = type.getDimSize(3),
                own_heads = heads == 1 ? 1 : type.getDimSize(1);
  // The numbers of tables' rows, [own_heads * queries].
  Value row = b.iota(RankedTensorType::get({queries}, b.i64()), 0);
  if (op.getShift())
    row = b.addInt(row, b.broadcast(op.getShift(), b.typeOf(row), {}));
  row = b.divideInt(b.clampInt(row, 0, rows * size - 1), size);
  Value head = b.iota(RankedTensorType::get({own_heads}, b.i64()), 0);
  if (op.getFirstHead())
    head = b.addInt(head, b.broadcast(op.getFirstHead(), b.typeOf(head), {}));
  head = b.clampInt(head, 0, heads - 1);
  const auto pairs = RankedTensorType::get({own_heads, queries}, b.i64());
  const Value number =
      b.addInt(b.broadcast(b.multiplyInt(head, rows), pairs, {0}),
               b.broadcast(row, pairs, {1}));
  Value mask =
      b.takeRows(b.reshape(b.elements(blocks), {heads * rows, columns}),
                 b.reshape(number, {own_heads * queries}));
  // Each column stands for `size` keys.
  mask = b.broadcast(
      mask, RankedTensorType::get({own_heads * queries, columns, size}, b.i1()),
      {0, 1});
  mask = b.firstOf(b.reshape(mask, {own_heads * queries, columns * size}), 1,
                   keys);
  const RankedTensorType bits = type.clone(b.i1());
  if (own_heads == 1 && type.getDimSize(1) != 1)
    return b.broadcast(mask, bits, {2, 3});
  return b.broadcast(b.reshape(mask, {own_heads, queries, keys}), bits,
                     {1, 2, 3});
}

// True where a query sees a key; null if all queries see all keys. `type` is
// the type of the scores.
template <typename Op>
Value visibleKeys(MathBuilder& b, Op op, RankedTensorType type) {
  Value visible;
  const RankedTensorType bits = type.clone(b.i1());
  const auto add = [&](CmpIPredicate predicate, Value x, Value y,
                       ArrayRef<int64_t> dims) {
    visible =
        both(b, visible, b.broadcast(b.compare(predicate, x, y), bits, dims));
  };
  if (const std::optional<int64_t> offset = op.getCausalOffset()) {
    const RankedTensorType pairs = RankedTensorType::get(
        {type.getDimSize(2), type.getDimSize(3)}, b.i64());
    const Value key = b.iota(pairs, 1);
    Value last = b.addInt(b.iota(pairs, 0), *offset);
    if (op.getShift())
      last = b.addInt(last, b.broadcast(op.getShift(), pairs, {}));
    add(CmpIPredicate::sle, key, last, {2, 3});
    if (const std::optional<int64_t> window = op.getWindow()) {
      Value first = b.addInt(last, 1 - *window);
      // A sink is behind every first key.
      if (const std::optional<int64_t> sinks = op.getSinks())
        first = b.select(
            b.compare(CmpIPredicate::slt, key, b.constantInt(pairs, *sinks)),
            key, first);
      add(CmpIPredicate::sge, key, first, {2, 3});
    }
  }
  if (op.getBlocks()) visible = both(b, visible, visibleBlocks(b, op, type));
  if (op.getQSegments()) {
    const RankedTensorType pairs = RankedTensorType::get(
        {type.getDimSize(0), type.getDimSize(2), type.getDimSize(3)},
        op.getQSegments().getType().getElementType());
    add(CmpIPredicate::eq, b.broadcast(op.getQSegments(), pairs, {0, 1}),
        b.broadcast(op.getKSegments(), pairs, {0, 2}), {0, 2, 3});
  }
  return visible;
}

// 0 where `x` is -inf, else x: a row without keys is shifted by 0, so that its
// exponentials are zeros, not NaN.
Value finiteOrZero(MathBuilder& b, Value x) {
  const Value is_lowest = b.compare(arith::CmpFPredicate::OEQ, x,
                                    b.constant(b.typeOf(x), -kInfinity));
  return b.select(is_lowest, b.constant(b.typeOf(x), 0), x);
}

// `scores` are shifted by `shift`, one number per row.
Value shiftedExp(MathBuilder& b, Value scores, Value shift) {
  return b.exp(b.subtract(scores, b.spread(shift, scores, 3)));
}

// Replaces the scores by weights, and computes lse if that is wanted.
void normalise(MathBuilder& b, Value scores, bool wants_lse, Softmax& softmax) {
  const Value highest = b.reduce(ReduceKind::max, scores, 3),
              shift = finiteOrZero(b, highest),
              exponentials = shiftedExp(b, scores, shift),
              sum = b.reduce(ReduceKind::sum, exponentials, 3);
  const Value sees_none = b.compare(arith::CmpFPredicate::OEQ, highest,
                                    b.constant(b.typeOf(highest), -kInfinity));
  const Value divisor = b.select(sees_none, b.constant(b.typeOf(sum), 1), sum);
  softmax.weights = b.divide(exponentials, b.spread(divisor, scores, 3));
  if (wants_lse) softmax.lse = b.add(b.log(sum), shift);
}

// Softmax of scale * q k^T, capped, biased and masked. It follows from
// `given_lse` unless that is null.
template <typename Op>
Softmax attentionSoftmax(MathBuilder& b, Op op, Value given_lse,
                         bool wants_lse) {
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
  if (const Value visible = visibleKeys(b, op, b.typeOf(scores)))
    scores =
        b.select(visible, scores, b.constant(b.typeOf(scores), -kInfinity));
  if (given_lse) {
    const Value shift = b.asFloat(finiteOrZero(b, given_lse),
                                  b.typeOf(scores).getElementType());
    softmax.weights = shiftedExp(b, scores, shift);
    return softmax;
  }
  normalise(b, scores, wants_lse, softmax);
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

Value buildVisibleKeys(MathBuilder& b, AttentionOp op,
                       RankedTensorType scores) {
  return visibleKeys(b, op, scores);
}

Value buildVisibleKeys(MathBuilder& b, AttentionGradOp op,
                       RankedTensorType scores) {
  return visibleKeys(b, op, scores);
}

Results AttentionOp::decompose(mlir::OpBuilder& builder) {
  MathBuilder b(builder, getLoc());
  const Softmax softmax = attentionSoftmax(b, *this, {}, getLse() != nullptr);
  const Value v = b.widen(getV());
  const Value result =
      b.dotGeneral(grouped(b, softmax.weights, b.typeOf(v).getDimSize(1)), v,
                   {0, 1}, {0, 1}, 4, 2);
  const RankedTensorType type = getResult().getType();
  SmallVector<Value> results = {
      b.narrow(b.reshape(result, type.getShape()), type)};
  if (getLse())
    results.push_back(
        b.asFloat(softmax.lse, b.typeOf(getLse()).getElementType()));
  return results;
}

Results AttentionGradOp::decompose(mlir::OpBuilder& builder) {
  MathBuilder b(builder, getLoc());
  const Softmax softmax = attentionSoftmax(b, *this, getLse(), false);
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
