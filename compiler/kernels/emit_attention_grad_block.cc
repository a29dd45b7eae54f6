// A block of queries against all keys: products with keys and values, weights
// and gradients of scores, and the sums over queries. The algorithm is
// described in emit_attention_grad.cc.
#include "compiler/kernels/emit_attention_grad_block.h"

#include "compiler/kernels/emit_matmul.h"
#include "compiler/kernels/emit_reduction.h"
#include "compiler/kernels/estimate_work.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace partita::kernels {

using namespace mlir;

namespace {

constexpr int64_t kKeys = 8;     // rows of the register tile of k's gradient
constexpr int64_t kVectors = 3;  // its columns

}  // namespace

FailureOr<Values> AttentionGradEmitter::emitBlock(Value first) {
  Value left =
      arith::SubIOp::create(builder_, emitter_.indexConstant(queries_), first);
  Value rows = emitter_.smaller(left, rows_);
  if (failed(packQueries(first))) return failure();
  FailureOr<AttentionMask::Range> visible = seenKeys(first);
  if (failed(visible)) return failure();
  seen_ = *visible;
  FailureOr<Value> parts = emitParts(seen_, first);
  if (failed(parts)) return failure();
  parts_ = *parts;
  const auto multiplyKeys = [&](const Part& part,
                                ValueRange) -> FailureOr<Values> {
    emitPanelProducts(query_, key_panels_, size_, weights_, width_, part.begin,
                      part.count, part.column);
    emitPanelProducts(given_, value_panels_, value_size_, scores_, width_,
                      part.begin, part.count, part.column);
    return Values();
  };
  if (failed(forEach({}, multiplyKeys)) ||
      failed(emitter_.loop(
          emitter_.indexConstant(0), rows, rows_, {},
          [&](const Symbol* row, ValueRange) { return emitRow(first, row); })))
    return failure();
  const bool wants_queries = buffers_[0].memref != nullptr;
  if (parts_ && wants_queries &&
      failed(clear(query_sums_, rows_ * padded(size_))))
    return failure();
  const auto addKeys = [&](const Part& part, ValueRange) -> FailureOr<Values> {
    addTransposed(weights_, given_, value_size_, value_sums_, part);
    addTransposed(scores_, query_, size_, key_sums_, part);
    if (wants_queries)
      emitWeightedSums(scores_, width_, key_rows_, size_, query_sums_,
                       /*accumulate=*/parts_ != nullptr, part.begin, part.count,
                       part.column);
    return Values();
  };
  if (failed(forEach({}, addKeys))) return failure();
  return wants_queries ? storeQueries(first, rows) : Values();
}

FailureOr<Values> AttentionGradEmitter::forEach(
    ValueRange init,
    llvm::function_ref<FailureOr<Values>(const Part&, ValueRange)> body) {
  return forEachPart(
      seen_, parts_, init,
      [&](const AttentionMask::Part& found, ValueRange carried) {
        Part part;
        part.begin = found.keys.begin;
        part.column = found.column;
        // Whole vectors; keys past the last one have weight 0.
        part.whole =
            multiply(arith::CeilDivUIOp::create(builder_, found.keys.end,
                                                emitter_.indexConstant(lanes_)),
                     lanes_);
        part.end = emitter_.smaller(part.whole, keys_);
        part.count = arith::SubIOp::create(builder_, part.end, part.begin);
        return body(part, carried);
      });
}

FailureOr<Values> AttentionGradEmitter::forKeys(
    const Symbol* row, ValueRange init,
    llvm::function_ref<FailureOr<Values>(const Symbol*, Value, ValueRange)>
        body) {
  return forEach(init, [&](const Part& part, ValueRange carried) {
    // Tiles begin with the first key that is seen.
    Value offset = arith::SubIOp::create(builder_, multiply(row->value, width_),
                                         part.begin);
    if (part.column) offset = add(offset, part.column);
    return emitter_.laneLoop(
        part.begin, part.end, keys_, width_, lanes_, carried,
        [&](const Symbol* keys, ValueRange values) {
          return body(keys, add(offset, keys->value), values);
        });
  });
}

FailureOr<Values> AttentionGradEmitter::emitRow(Value first,
                                                const Symbol* row) {
  const Symbol* query = queryAt(first, row);
  FailureOr<WeightOf> weight_of =
      op_.getLse() ? weightsByLse(query) : weightsBySums(query, row);
  if (failed(weight_of)) return failure();
  Value mean = emitter_.splat(
      {memref::LoadOp::create(builder_, mean_.memref, row->value), 0}, lanes_);
  Value bias_row = adds_batches_
                       ? multiply(add(first_bias_row_, query->value), row_)
                       : Value();
  return forKeys(
      row, {},
      [&](const Symbol* keys, Value at, ValueRange) -> FailureOr<Values> {
        FailureOr<Value> weight = (*weight_of)(keys, at);
        if (failed(weight)) return failure();
        storeVector(*weight, weights_, at);
        Value score =
            arith::SubFOp::create(builder_, loadVector(scores_, at), mean);
        score = arith::MulFOp::create(builder_, *weight, score);
        if (keys->mask)
          score = arith::SelectOp::create(builder_, keys->mask, score,
                                          emitter_.constant(type_, 0, lanes_));
        storeVector(score, scores_, at);
        if (bias_row) {
          Value to = add(bias_row, keys->value);
          storeVector(arith::AddFOp::create(builder_,
                                            loadVector(bias_sums_, to), score),
                      bias_sums_, to);
        }
        return Values();
      });
}

FailureOr<AttentionGradEmitter::WeightOf> AttentionGradEmitter::weightsByLse(
    const Symbol* query) {
  FailureOr<Lanes> lse =
      emitter_.element(op_.getLse(), {batch_, head_, Index(query)});
  if (failed(lse)) return failure();
  Value shift = lse->value, zero = emitter_.constant(shift.getType(), 0);
  // A query that sees no key has lse = -inf and weights exp(-inf - 0).
  Value none = arith::CmpFOp::create(
      builder_, arith::CmpFPredicate::OEQ, shift,
      neutralElement(emitter_, nn::ReduceKind::max, shift.getType()));
  shift = arith::SelectOp::create(builder_, none, zero, shift);
  if (shift.getType() != type_)
    shift = arith::ExtFOp::create(builder_, type_, shift);
  Value shifts = emitter_.splat({shift, 0}, lanes_);
  return WeightOf([=](const Symbol* keys, Value at) -> FailureOr<Value> {
    FailureOr<Value> score = adjustScore(loadVector(weights_, at), query, keys);
    if (failed(score)) return failure();
    return Value(math::ExpOp::create(
        builder_, arith::SubFOp::create(builder_, *score, shifts)));
  });
}

FailureOr<AttentionGradEmitter::WeightOf> AttentionGradEmitter::weightsBySums(
    const Symbol* query, const Symbol* row) {
  FailureOr<Value> sum = emitWeights(query, row);
  if (failed(sum)) return failure();
  Value zero = emitter_.constant(type_, 0);
  Value none =
      arith::CmpFOp::create(builder_, arith::CmpFPredicate::OEQ, *sum, zero);
  Value inverse =
      arith::DivFOp::create(builder_, emitter_.constant(type_, 1), *sum);
  inverse = emitter_.splat(
      {arith::SelectOp::create(builder_, none, zero, inverse), 0}, lanes_);
  return WeightOf([=](const Symbol*, Value at) -> FailureOr<Value> {
    return Value(
        arith::MulFOp::create(builder_, loadVector(weights_, at), inverse));
  });
}

FailureOr<Value> AttentionGradEmitter::emitWeights(const Symbol* query,
                                                   const Symbol* row) {
  Value lowest = neutralElement(emitter_, nn::ReduceKind::max, type_);
  Values init = {emitter_.splat({lowest, 0}, lanes_)};
  FailureOr<Values> largest =
      forKeys(row, init,
              [&](const Symbol* keys, Value at,
                  ValueRange carried) -> FailureOr<Values> {
                Value score = loadVector(weights_, at);
                FailureOr<Value> adjusted = adjustScore(score, query, keys);
                if (failed(adjusted)) return failure();
                if (*adjusted != score) storeVector(*adjusted, weights_, at);
                return Values{larger(*adjusted, carried[0])};
              });
  if (failed(largest)) return failure();
  Value shift = largestLane(largest->front());
  Value none =
      arith::CmpFOp::create(builder_, arith::CmpFPredicate::OEQ, shift, lowest);
  shift = arith::SelectOp::create(builder_, none, emitter_.constant(type_, 0),
                                  shift);
  Value shifts = emitter_.splat({shift, 0}, lanes_);
  Values zero = {emitter_.constant(type_, 0, lanes_)};
  FailureOr<Values> sums = forKeys(
      row, zero,
      [&](const Symbol* keys, Value at,
          ValueRange carried) -> FailureOr<Values> {
        Value weight = math::ExpOp::create(
            builder_,
            arith::SubFOp::create(builder_, loadVector(weights_, at), shifts));
        if (keys->mask)
          weight =
              arith::SelectOp::create(builder_, keys->mask, weight, zero[0]);
        storeVector(weight, weights_, at);
        return Values{arith::AddFOp::create(builder_, carried[0], weight)};
      });
  if (failed(sums)) return failure();
  return combineLanes(emitter_, nn::ReduceKind::sum, sums->front());
}

void AttentionGradEmitter::addTransposed(const Buffer& a, const Buffer& b,
                                         int64_t size, const Buffer& sums,
                                         const Part& part) {
  const int64_t tile = std::min(kKeys, lanes_);
  auto loop = scf::ForOp::create(builder_, part.begin, part.whole,
                                 emitter_.indexConstant(tile));
  loop->setAttr(kTripsAttr, builder_.getI64IntegerAttr(width_ / tile));
  OpBuilder::InsertionGuard guard(builder_);
  builder_.setInsertionPoint(loop.getBody()->getTerminator());
  const int64_t vectors = padded(size) / lanes_;
  for (int64_t v = 0, width; v < vectors; v += width) {
    width = std::min<int64_t>(vectors - v, vectors - v == 4 ? 2 : kVectors);
    MicroMatmul matmul;
    matmul.rows = tile;
    matmul.vectors = width;
    matmul.lanes = lanes_;
    matmul.a = a.memref;
    matmul.a_first =
        arith::SubIOp::create(builder_, loop.getInductionVar(), part.begin);
    if (part.column) matmul.a_first = add(matmul.a_first, part.column);
    matmul.a_row = 1;
    matmul.a_k = width_;
    matmul.b = b.memref;
    matmul.b_first = emitter_.indexConstant(v * lanes_);
    matmul.b_k = padded(size);
    matmul.b_vector = lanes_;
    matmul.depth = emitter_.indexConstant(rows_);
    matmul.expected_depth = rows_;
    const auto at = [&](int64_t row, int64_t i) {
      return add(multiply(loop.getInductionVar(), padded(size)),
                 row * padded(size) + (v + i) * lanes_);
    };
    Values before;
    for (int64_t row = 0; row < tile; ++row)
      for (int64_t i = 0; i < width; ++i)
        before.push_back(loadVector(sums, at(row, i)));
    const Values after = emitMicroMatmul(emitter_, matmul, before);
    for (int64_t row = 0; row < tile; ++row)
      for (int64_t i = 0; i < width; ++i)
        storeVector(after[row * width + i], sums, at(row, i));
  }
}

}  // namespace partita::kernels
