// Decompositions of mixtures of experts into grouped products, and of these
// into products of every row with every matrix.
#include "dialects/nn/dialect.h"
#include "dialects/nn/experts.h"
#include "dialects/nn/math_builder.h"
#include "llvm/ADT/STLExtras.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace partita::nn {
namespace {

using mlir::FailureOr;
using mlir::RankedTensorType;
using mlir::SmallVector;
using mlir::Value;
namespace arith = mlir::arith;

using Results = FailureOr<SmallVector<Value>>;

constexpr double kSqrtHalf = 0.70710678118654752440;
constexpr double kSqrtTwoOverPi = 0.79788456080286535588;
constexpr double kCubic = 0.044715;  // of the approximation with tanh

// [R, X], true where row r has index x. `ids` is [R].
Value isMember(mlir::OpBuilder& builder, mlir::Location loc, Value ids,
               int64_t count) {
  MathBuilder b(builder, loc);
  const RankedTensorType wide = b.typeOf(ids).clone(b.i64());
  if (ids.getType() != wide)
    ids = arith::ExtSIOp::create(builder, loc, wide, ids);
  const RankedTensorType pairs =
      RankedTensorType::get({wide.getDimSize(0), count}, b.i64());
  return b.compare(arith::CmpIPredicate::eq, b.broadcast(ids, pairs, {0}),
                   b.iota(pairs, 1));
}

// [R, X, K]: `rows` [R, K] at each row's own index, 0 elsewhere.
Value spreadToOwn(MathBuilder& b, Value is_member, Value rows) {
  const auto pairs = b.typeOf(is_member).getShape();
  RankedTensorType type = b.typeOf(rows).clone(
      SmallVector<int64_t>{pairs[0], pairs[1], b.typeOf(rows).getDimSize(1)});
  return b.select(b.broadcast(is_member, type.clone(b.i1()), {0, 1}),
                  b.broadcast(rows, type, {0, 2}), b.constant(type, 0));
}

// Formulas on [rows, width] tensors in f32 or wider. Row r of x stands once for
// each of its indices.
template <typename Op>
class Experts {
 public:
  Experts(mlir::OpBuilder& builder, Op op)
      : b(builder, op.getLoc()),
        builder_(builder),
        op_(op),
        choices_(op.getIds().getType().getShape().back()),
        rows_(op.getIds().getType().getNumElements()) {
    for (int64_t size : op.getIds().getType().getShape().drop_back())
      positions_ *= size;
    ids_ = b.reshape(op.getIds(), {rows_});
    x_ = repeat(op.getX());
  }

  MathBuilder b;

  Value x() const { return x_; }

  // [..., width] as [rows, width], once for each index.
  Value repeat(Value value) {
    const int64_t width = b.typeOf(value).getShape().back();
    value = b.reshape(value, {positions_, width});
    const RankedTensorType type = b.typeOf(value).clone(
        SmallVector<int64_t>{positions_, choices_, width});
    return b.reshape(b.broadcast(value, type, {0, 2}), {rows_, width});
  }
  // The sum of [rows, width] over the indices, as `type`.
  Value sumOverChoices(Value value, RankedTensorType type) {
    const int64_t width = b.typeOf(value).getDimSize(1);
    value = b.reshape(value, {positions_, choices_, width});
    return b.narrow(
        b.reshape(b.reduce(ReduceKind::sum, value, {1}), type.getShape()),
        type);
  }
  // The weights [..., k] along the rows of `like`.
  Value weightsLike(Value like) {
    return b.broadcast(b.reshape(b.widen(op_.getWeights()), {rows_}),
                       b.typeOf(like), {0});
  }
  Value rounded(Value value) {
    return b.narrow(
        value, b.typeOf(value).clone(op_.getX().getType().getElementType()));
  }

  // The products of rows of the element type, widened.
  Value times(Value rows, Value matrices, bool transposed = false) {
    const int64_t width = b.typeOf(matrices).getDimSize(transposed ? 2 : 1);
    return b.widen(GroupedDotOp::create(
        builder_, op_.getLoc(),
        b.typeOf(rows).clone(SmallVector<int64_t>{rows_, width}), rows, ids_,
        matrices, transposed));
  }
  Value affine(Value rows, Value matrices, Value bias) {
    const Value product = times(rows, matrices);
    return bias ? b.add(product, biasRows(bias)) : product;
  }
  // Row i of `bias` [X, width] for each row with index i.
  Value biasRows(Value bias) {
    const Value wide = b.widen(bias);
    return b.dotGeneral(indicator(wide), wide, {}, {}, {1}, {0});
  }
  // The sum over the rows of each index.
  Value sumPerExpert(Value rows, RankedTensorType type) {
    return b.narrow(b.dotGeneral(indicator(rows), rows, {}, {}, {0}, {0}),
                    type);
  }
  Value weightGrad(Value x, Value grad, Value matrices) {
    return GroupedDotWeightGradOp::create(builder_, op_.getLoc(),
                                          matrices.getType(), x, ids_, grad);
  }

  Value activate(Value x) {
    switch (op_.getActivation()) {
      case ExpertActivation::relu:
        return b.select(isPositive(x), x, b.constant(b.typeOf(x), 0));
      case ExpertActivation::gelu:
        return b.multiply(x, phi(x));
      case ExpertActivation::gelu_tanh:
        return b.multiply(b.multiply(x, 0.5), b.add(b.tanh(cubic(x)), 1));
      case ExpertActivation::silu:
        return b.multiply(x, sigmoid(x));
    }
    return {};
  }
  Value slopeAt(Value x) {
    const Value one = b.constant(b.typeOf(x), 1);
    switch (op_.getActivation()) {
      case ExpertActivation::relu:
        return b.select(isPositive(x), one, b.constant(b.typeOf(x), 0));
      case ExpertActivation::gelu: {
        const Value density = b.multiply(
            b.exp(b.multiply(b.multiply(x, x), -0.5)), 0.5 * kSqrtTwoOverPi);
        return b.add(phi(x), b.multiply(x, density));
      }
      case ExpertActivation::gelu_tanh: {
        const Value tanh = b.tanh(cubic(x));
        const Value inner =
            b.add(b.multiply(b.multiply(x, x), 3 * kCubic * kSqrtTwoOverPi),
                  kSqrtTwoOverPi);
        const Value rest = b.multiply(
            b.multiply(x, b.subtract(one, b.multiply(tanh, tanh))), inner);
        return b.multiply(b.add(b.add(tanh, rest), 1), 0.5);
      }
      case ExpertActivation::silu: {
        const Value s = sigmoid(x);
        return b.multiply(s, b.add(b.multiply(x, b.subtract(one, s)), 1));
      }
    }
    return {};
  }

 private:
  // [R, X] of the element type of `like`: 1 at each row's own index.
  Value indicator(Value like) {
    const Value member = isMember(builder_, op_.getLoc(), ids_,
                                  op_.getUp().getType().getDimSize(0));
    const RankedTensorType type =
        b.typeOf(member).clone(b.typeOf(like).getElementType());
    return b.select(member, b.constant(type, 1), b.constant(type, 0));
  }
  Value isPositive(Value x) {
    return b.compare(arith::CmpFPredicate::OGT, x, b.constant(b.typeOf(x), 0));
  }
  // The normal distribution function.
  Value phi(Value x) {
    const Value erf = mlir::math::ErfOp::create(builder_, op_.getLoc(),
                                                b.multiply(x, kSqrtHalf));
    return b.multiply(b.add(erf, 1), 0.5);
  }
  Value cubic(Value x) {
    const Value cube = b.multiply(b.multiply(x, x), x);
    return b.multiply(b.add(x, b.multiply(cube, kCubic)), kSqrtTwoOverPi);
  }
  Value sigmoid(Value x) {
    const Value one = b.constant(b.typeOf(x), 1);
    return b.divide(one, b.add(b.exp(b.multiply(x, -1)), 1));
  }

  mlir::OpBuilder& builder_;
  Op op_;
  // Sizes of `ids`: all but the last dimension, the last, all.
  int64_t positions_ = 1, choices_, rows_;
  Value ids_, x_;
};

}  // namespace

Results GroupedDotOp::decompose(mlir::OpBuilder& builder) {
  MathBuilder b(builder, getLoc());
  const Value own = spreadToOwn(
      b, isMember(builder, getLoc(), getIds(), getW().getType().getDimSize(0)),
      getX());
  return SmallVector<Value>{
      b.dotGeneral(own, getW(), {}, {}, {1, 2}, {0, getTransposed() ? 1 : 2})};
}

Results GroupedDotWeightGradOp::decompose(mlir::OpBuilder& builder) {
  MathBuilder b(builder, getLoc());
  const Value own = spreadToOwn(
      b, isMember(builder, getLoc(), getIds(), getType().getDimSize(0)),
      getResultGrad());
  return SmallVector<Value>{b.dotGeneral(own, getX(), {}, {}, {0}, {0})};
}

Results ExpertsOp::decompose(mlir::OpBuilder& builder) {
  Experts experts(builder, *this);
  MathBuilder& b = experts.b;
  const Value up = experts.affine(experts.x(), getUp(), getUpBias());
  const Value h = getGate()
                      ? b.multiply(experts.activate(experts.affine(
                                       experts.x(), getGate(), getGateBias())),
                                   up)
                      : experts.activate(up);
  const Value y = experts.affine(experts.rounded(h), getDown(), getDownBias());
  return SmallVector<Value>{
      experts.sumOverChoices(b.multiply(y, experts.weightsLike(y)), getType())};
}

Results ExpertsGradOp::decompose(mlir::OpBuilder& builder) {
  Experts experts(builder, *this);
  MathBuilder& b = experts.b;
  const Value x = experts.x(), g = experts.repeat(getResultGrad());
  const Value up = experts.affine(x, getUp(), getUpBias());
  Value gate, activated;
  if (getGate()) {
    gate = experts.affine(x, getGate(), getGateBias());
    activated = experts.activate(gate);
  }
  const Value h =
      experts.rounded(gate ? b.multiply(activated, up) : experts.activate(up));

  // The gradient of h without the weights gives the gradient of the weights.
  const Value unweighted = experts.times(g, getDown(), /*transposed=*/true);
  Value of_weights =
      b.reduce(ReduceKind::sum, b.multiply(unweighted, b.widen(h)), {1});
  if (getDownBias())
    of_weights = b.add(
        of_weights,
        b.reduce(ReduceKind::sum,
                 b.multiply(b.widen(g), experts.biasRows(getDownBias())), {1}));
  const Value of_h = b.multiply(unweighted, experts.weightsLike(unweighted));
  const Value wide_g = b.widen(g);
  const Value weighted =
      experts.rounded(b.multiply(wide_g, experts.weightsLike(wide_g)));

  Value of_gate;
  const Value of_up =
      experts.rounded(b.multiply(of_h, gate ? activated : experts.slopeAt(up)));
  Value of_x = experts.times(of_up, getUp(), /*transposed=*/true);
  if (gate) {
    of_gate = experts.rounded(
        b.multiply(b.multiply(of_h, up), experts.slopeAt(gate)));
    of_x = b.add(of_x, experts.times(of_gate, getGate(), /*transposed=*/true));
  }

  SmallVector<Value> results = {
      experts.sumOverChoices(of_x, getX().getType()),
      b.narrow(b.reshape(of_weights, getWeights().getType().getShape()),
               getWeights().getType())};
  if (gate) results.push_back(experts.weightGrad(x, of_gate, getGate()));
  results.push_back(experts.weightGrad(x, of_up, getUp()));
  results.push_back(experts.weightGrad(h, weighted, getDown()));
  const std::pair<Value, Value> biases[] = {{getGateBias(), of_gate},
                                            {getUpBias(), of_up},
                                            {getDownBias(), weighted}};
  for (auto [bias, grad] : biases)
    if (bias)
      results.push_back(experts.sumPerExpert(b.widen(grad), b.typeOf(bias)));
  return results;
}

}  // namespace partita::nn
