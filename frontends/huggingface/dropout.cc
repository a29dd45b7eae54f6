// Dropout (Srivastava et al., 2014) with random numbers that depend only on a
// seed and the element's position.
#include <limits>

#include "frontends/huggingface/builder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace partita::huggingface {

namespace arith = mlir::arith;

// Linear congruential generators for seeds. Unlike a counter, they are the same
// operations in every layer. One generator steps from layer to layer (its
// factor is from L'Ecuyer, 1999), another from dropout to dropout within a
// layer (Knuth's MMIX).
Value Builder::nextSeed(Value seed, int64_t factor, int64_t summand) {
  return addIntegers(mulIntegers(seed, integerSplat({}, factor)),
                     integerSplat({}, summand));
}

Value Builder::dropout(Value x, double probability) {
  if (!seed_ || probability <= 0.0) return x;
  const ArrayRef<int64_t> shape = shapeOf(x);
  const Value numbers = nn::RandomOp::create(builder_, loc_, f32(shape),
                                             nn::Distribution::uniform, seed_);
  seed_ = nextSeed(seed_, 6364136223846793005, 1442695040888963407);
  const Value stays =
      arith::CmpFOp::create(builder_, loc_, arith::CmpFPredicate::OGE, numbers,
                            splat(shape, probability));
  return arith::SelectOp::create(builder_, loc_, stays,
                                 scale(x, 1.0 / (1.0 - probability)),
                                 splat(shape, 0.0));
}

// Computes nn.attention with all scores stored. Key-value heads are repeated
// for their queries.
Value Builder::attentionByScores(Value q, Value k, Value v, Value bias,
                                 double scale, bool causal, double dropout,
                                 std::optional<int64_t> window) {
  const auto repeat = [&](Value x) {
    const Shape from(shapeOf(x));
    const int64_t heads = shapeOf(q)[1];
    if (from[1] == heads) return x;
    x = broadcast(x, {from[0], from[1], heads / from[1], from[2], from[3]},
                  {0, 1, 3, 4});
    return reshape(x, {from[0], heads, from[2], from[3]});
  };
  const auto product = [&](Value a, Value b, int64_t b_dim) -> Value {
    return nn::DotGeneralOp::create(
        builder_, loc_, a, b, ArrayRef<int64_t>{0, 1}, ArrayRef<int64_t>{0, 1},
        ArrayRef<int64_t>{3}, ArrayRef<int64_t>{b_dim});
  };
  Value scores = this->scale(product(q, repeat(k), 3), scale);
  const Shape shape(shapeOf(scores));
  if (bias)
    scores = add(scores, shapeOf(bias) == ArrayRef<int64_t>(shape)
                             ? bias
                             : broadcast(bias, shape, {0, 1, 2, 3}));
  if (causal) {
    const Value query = iota(shape, 2), key = iota(shape, 3);
    Value seen = arith::CmpIOp::create(builder_, loc_,
                                       arith::CmpIPredicate::sge, query, key);
    if (window) {
      const Value end = addIntegers(key, integerSplat(shape, *window));
      seen = arith::AndIOp::create(
          builder_, loc_, seen,
          arith::CmpIOp::create(builder_, loc_, arith::CmpIPredicate::slt,
                                query, end));
    }
    scores = arith::SelectOp::create(
        builder_, loc_, seen, scores,
        splat(shape, std::numeric_limits<float>::lowest()));
  }
  const Value shares =
      nn::SoftmaxOp::create(builder_, loc_, scores.getType(), scores,
                            builder_.getI64IntegerAttr(3), mlir::UnitAttr());
  return product(this->dropout(shares, dropout), repeat(v), 2);
}

}  // namespace partita::huggingface
