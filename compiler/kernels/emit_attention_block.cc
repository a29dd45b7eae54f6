// Attention for one block of queries: products that keep their sums in
// registers, and a softmax that runs over blocks of keys.
#include "compiler/kernels/emit_attention_block.h"

#include "compiler/kernels/emit_matmul.h"
#include "compiler/kernels/emit_reduction.h"
#include "compiler/kernels/estimate_work.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace partita::kernels {

using namespace mlir;

namespace {

constexpr int64_t kScoreVectors = 3;  // columns of the register tile for scores

RankedTensorType typeOf(Value tensor) {
  return cast<RankedTensorType>(tensor.getType());
}

}  // namespace

FailureOr<Values> AttentionEmitter::emitBlock(const Symbol* block) {
  Value first = multiply(block->value, rows_);
  if (failed(packQueries(first))) return failure();
  if (!one_block_ && failed(clearState())) return failure();
  // Keys from `visible` on are masked for all of the block.
  Value visible = emitter_.indexConstant(keys_);
  if (op_.getCausalOffset()) {
    Value last = arith::AddIOp::create(
        builder_, first,
        emitter_.indexConstant(static_cast<int64_t>(*op_.getCausalOffset()) +
                               rows_));
    last = arith::MaxSIOp::create(builder_, last, emitter_.indexConstant(0));
    visible = arith::MinSIOp::create(builder_, last, visible);
  }
  int64_t key_blocks = (keys_ + key_block_ - 1) / key_block_;
  Value count = arith::CeilDivUIOp::create(builder_, visible,
                                           emitter_.indexConstant(key_block_));
  FailureOr<Values> done;
  if (one_block_) {
    done = emitKeys(first, emitter_.indexConstant(0), visible);
  } else {
    done = emitter_.loop(
        emitter_.indexConstant(0), count, key_blocks, {},
        [&](const Symbol* keys, ValueRange) {
          return emitKeys(first, multiply(keys->value, key_block_), visible);
        });
  }
  if (failed(done)) return failure();
  return emitOutputs(first);
}

LogicalResult AttentionEmitter::clearState() {
  return emitter_.loop(
      rows_, {}, [&](const Symbol* row, ValueRange) -> FailureOr<Values> {
        Value lowest = neutralElement(emitter_, nn::ReduceKind::max, type_);
        memref::StoreOp::create(builder_, lowest, largest_.memref, row->value);
        memref::StoreOp::create(builder_, emitter_.constant(type_, 0),
                                weight_.memref, row->value);
        for (int64_t v = 0; v < padded_value_; v += lanes_)
          storeVector(emitter_.constant(type_, 0, lanes_), sums_,
                      add(multiply(row->value, padded_value_), v));
        return Values();
      });
}

FailureOr<Values> AttentionEmitter::emitKeys(Value begin, Value first_key,
                                             Value visible) {
  Value end =
      arith::MinUIOp::create(builder_, add(first_key, key_block_), visible);
  // Whole vectors, or up to the last key.
  end = multiply(
      arith::CeilDivUIOp::create(builder_, end, emitter_.indexConstant(lanes_)),
      lanes_);
  end = emitter_.smaller(end, keys_);
  Value count = arith::SubIOp::create(builder_, end, first_key);
  emitScores(first_key, count);
  FailureOr<Values> softmax =
      emitter_.loop(rows_, {}, [&](const Symbol* row, ValueRange) {
        return emitSoftmax(begin, row, first_key, end);
      });
  if (failed(softmax)) return failure();
  emitWeightedSums(first_key, count);
  return Values();
}

void AttentionEmitter::emitScores(Value first_key, Value count) {
  Value vectors = arith::CeilDivUIOp::create(builder_, count,
                                             emitter_.indexConstant(lanes_));
  Value panel = arith::DivUIOp::create(builder_, first_key,
                                       emitter_.indexConstant(lanes_));
  Value whole = arith::SubIOp::create(
      builder_, vectors,
      arith::RemUIOp::create(builder_, vectors,
                             emitter_.indexConstant(kScoreVectors)));
  emitScoreLoop(panel, emitter_.indexConstant(0), whole, kScoreVectors);
  emitScoreLoop(panel, whole, vectors, 1);
}

void AttentionEmitter::emitScoreLoop(Value panel, Value begin, Value end,
                                     int64_t width) {
  auto loop =
      scf::ForOp::create(builder_, begin, end, emitter_.indexConstant(width));
  int64_t vectors = key_block_ / lanes_;
  loop->setAttr(kTripsAttr,
                builder_.getI64IntegerAttr(width == 1 ? 1 : vectors / width));
  OpBuilder::InsertionGuard guard(builder_);
  builder_.setInsertionPoint(loop.getBody()->getTerminator());
  MicroMatmul matmul;
  matmul.rows = rows_;
  matmul.vectors = width;
  matmul.lanes = lanes_;
  matmul.a = packed_q_.memref;
  matmul.a_first = emitter_.indexConstant(0);
  matmul.a_row = padded_size_;
  matmul.a_k = 1;
  matmul.b = packed_k_.memref;
  matmul.b_first = multiply(add(panel, loop.getInductionVar()), size_ * lanes_);
  matmul.b_k = lanes_;
  matmul.b_vector = size_ * lanes_;
  matmul.depth = emitter_.indexConstant(size_);
  matmul.expected_depth = size_;
  Values products = emitMicroMatmul(emitter_, matmul);
  for (int64_t row = 0; row < rows_; ++row)
    for (int64_t v = 0; v < width; ++v) {
      Value at = add(multiply(loop.getInductionVar(), lanes_),
                     row * key_block_ + v * lanes_);
      storeVector(products[row * width + v], scores_, at);
    }
}

FailureOr<Values> AttentionEmitter::emitSoftmax(Value first, const Symbol* row,
                                                Value first_key, Value end) {
  Symbol query;
  query.value = emitter_.smaller(add(first, row->value), queries_ - 1);
  query.extent = queries_;
  const Symbol* position = emitter_.newSymbol(query);
  Value offset = arith::SubIOp::create(
      builder_, multiply(row->value, key_block_), first_key);
  Value lowest = neutralElement(emitter_, nn::ReduceKind::max, type_);
  Values init = {emitter_.splat({lowest, 0}, lanes_)};
  FailureOr<Values> largest = emitter_.laneLoop(
      first_key, end, keys_, key_block_, lanes_, init,
      [&](const Symbol* keys, ValueRange carried) -> FailureOr<Values> {
        Value at = add(offset, keys->value);
        Value score = loadVector(scores_, at);
        FailureOr<Value> adjusted = adjustScore(score, position, keys);
        if (failed(adjusted)) return failure();
        if (*adjusted != score) storeVector(*adjusted, scores_, at);
        return Values{larger(*adjusted, carried[0])};
      });
  if (failed(largest)) return failure();
  Value now = largestLane(largest->front()), before;
  if (!one_block_) {
    before = memref::LoadOp::create(builder_, largest_.memref, row->value);
    now = larger(now, before);
    memref::StoreOp::create(builder_, now, largest_.memref, row->value);
  }
  // A row that sees no key yet keeps weights of 0.
  Value none =
      arith::CmpFOp::create(builder_, arith::CmpFPredicate::OEQ, now, lowest);
  Value shift =
      arith::SelectOp::create(builder_, none, emitter_.constant(type_, 0), now);
  Value shifts = emitter_.splat({shift, 0}, lanes_);
  Values zero = {emitter_.constant(type_, 0, lanes_)};
  FailureOr<Values> weights = emitter_.laneLoop(
      first_key, end, keys_, key_block_, lanes_, zero,
      [&](const Symbol* keys, ValueRange carried) -> FailureOr<Values> {
        Value at = add(offset, keys->value);
        Value difference =
            arith::SubFOp::create(builder_, loadVector(scores_, at), shifts);
        Value weight = math::ExpOp::create(builder_, difference);
        if (keys->mask)
          weight =
              arith::SelectOp::create(builder_, keys->mask, weight, zero[0]);
        storeVector(weight, scores_, at);
        return Values{arith::AddFOp::create(builder_, carried[0], weight)};
      });
  if (failed(weights)) return failure();
  Value weight = combineLanes(emitter_, nn::ReduceKind::sum, weights->front());
  if (!one_block_) weight = rescale(row, before, shift, weight);
  memref::StoreOp::create(builder_, weight, weight_.memref, row->value);
  return Values();
}

Value AttentionEmitter::rescale(const Symbol* row, Value before, Value shift,
                                Value weight) {
  Value factor = math::ExpOp::create(
      builder_, arith::SubFOp::create(builder_, before, shift));
  for (int64_t v = 0; v < padded_value_; v += lanes_) {
    Value at = add(multiply(row->value, padded_value_), v);
    Value scaled = arith::MulFOp::create(builder_, loadVector(sums_, at),
                                         emitter_.splat({factor, 0}, lanes_));
    storeVector(scaled, sums_, at);
  }
  Value old = memref::LoadOp::create(builder_, weight_.memref, row->value);
  return arith::AddFOp::create(
      builder_, arith::MulFOp::create(builder_, old, factor), weight);
}

FailureOr<Value> AttentionEmitter::adjustScore(Value score, const Symbol* query,
                                               const Symbol* keys) {
  if (double cap = op_.getSoftcap().convertToDouble(); cap > 0) {
    Value caps = emitter_.constant(type_, cap, lanes_);
    Value small = arith::DivFOp::create(builder_, score, caps);
    score = arith::MulFOp::create(builder_,
                                  math::TanhOp::create(builder_, small), caps);
  }
  if (Value bias = op_.getBias()) {
    IndexVector index = {batch_, head_, Index(query), Index(keys)};
    for (auto [i, size] : llvm::zip_equal(index, typeOf(bias).getShape()))
      if (size == 1) i = Index();
    // The next block's rows begin in pages that hardware does not foresee.
    if (typeOf(bias).getDimSize(2) != 1) {
      Symbol later = *query;
      later.value = emitter_.smaller(add(query->value, rows_), queries_ - 1);
      IndexVector next = index;
      next[2] = Index(emitter_.newSymbol(later));
      if (typeOf(bias).getDimSize(3) != 1 &&
          failed(emitter_.prefetch(bias, next)))
        return failure();
    }
    FailureOr<Lanes> element = emitter_.element(bias, index);
    if (failed(element)) return failure();
    score = arith::AddFOp::create(builder_, score,
                                  emitter_.splat(*element, lanes_));
  }
  Value lowest = emitter_.splat(
      {neutralElement(emitter_, nn::ReduceKind::max, type_), 0}, lanes_);
  if (op_.getCausalOffset()) {
    Lanes key = emitter_.number(Index(keys), builder_.getI32Type());
    Lanes last = emitter_.number(
        Index(query) + Index(static_cast<int64_t>(*op_.getCausalOffset())),
        builder_.getI32Type());
    Value sees = arith::CmpIOp::create(builder_, arith::CmpIPredicate::sle,
                                       key.value, emitter_.splat(last, lanes_));
    score = arith::SelectOp::create(builder_, sees, score, lowest);
  }
  if (keys->mask)
    score = arith::SelectOp::create(builder_, keys->mask, score, lowest);
  return score;
}

void AttentionEmitter::emitWeightedSums(Value first_key, Value count) {
  int64_t vectors = padded_value_ / lanes_;
  for (int64_t v = 0; v < vectors;) {
    int64_t width =
        std::min<int64_t>(vectors - v, vectors - v == 4 ? 2 : kScoreVectors);
    MicroMatmul matmul;
    matmul.rows = rows_;
    matmul.vectors = width;
    matmul.lanes = lanes_;
    matmul.a = scores_.memref;
    matmul.a_first = emitter_.indexConstant(0);
    matmul.a_row = key_block_;
    matmul.a_k = 1;
    matmul.b = packed_v_.memref;
    matmul.b_first = add(multiply(first_key, padded_value_), v * lanes_);
    matmul.b_k = padded_value_;
    matmul.b_vector = lanes_;
    matmul.depth = count;
    matmul.expected_depth = key_block_;
    auto at = [&](int64_t row, int64_t i) {
      return emitter_.indexConstant(row * padded_value_ + (v + i) * lanes_);
    };
    Values sums;
    for (int64_t row = 0; row < rows_ && !one_block_; ++row)
      for (int64_t i = 0; i < width; ++i)
        sums.push_back(loadVector(sums_, at(row, i)));
    sums = emitMicroMatmul(emitter_, matmul, sums);
    for (int64_t row = 0; row < rows_; ++row)
      for (int64_t i = 0; i < width; ++i)
        storeVector(sums[row * width + i], sums_, at(row, i));
    v += width;
  }
}

}  // namespace partita::kernels
