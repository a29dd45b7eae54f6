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

FailureOr<Values> AttentionEmitter::emitBlock(const Symbol* block) {
  Value first = multiply(block->value, rows_);
  if (failed(packQueries(first))) return failure();
  if (!one_block_ && failed(clearState())) return failure();
  // All other keys are masked for the whole block.
  FailureOr<AttentionMask::Range> seen = seenKeys(first);
  if (failed(seen)) return failure();
  FailureOr<Value> parts = emitParts(*seen, first);
  if (failed(parts) ||
      failed(forEachPart(*seen, *parts, {},
                         [&](const AttentionMask::Part& part, ValueRange) {
                           return emitRange(first, part.keys);
                         })))
    return failure();
  return emitOutputs(first);
}

FailureOr<Values> AttentionEmitter::emitRange(
    Value first, const AttentionMask::Range& keys) {
  if (one_block_) return emitKeys(first, keys.begin, keys.end);
  const int64_t key_blocks = (keys_ + key_block_ - 1) / key_block_;
  Value count = arith::CeilDivUIOp::create(
      builder_, arith::SubIOp::create(builder_, keys.end, keys.begin),
      emitter_.indexConstant(key_block_));
  return emitter_.loop(
      emitter_.indexConstant(0), count, key_blocks, {},
      [&](const Symbol* block, ValueRange) {
        return emitKeys(first,
                        add(keys.begin, multiply(block->value, key_block_)),
                        keys.end);
      });
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

FailureOr<Values> AttentionEmitter::emitKeys(Value first, Value first_key,
                                             Value visible) {
  Value end =
      arith::MinUIOp::create(builder_, add(first_key, key_block_), visible);
  // Round up to whole vectors, but not past the last key.
  end = multiply(
      arith::CeilDivUIOp::create(builder_, end, emitter_.indexConstant(lanes_)),
      lanes_);
  end = emitter_.smaller(end, keys_);
  Value count = arith::SubIOp::create(builder_, end, first_key);
  emitPanelProducts(packed_q_, packed_k_, size_, scores_, key_block_, first_key,
                    count);
  FailureOr<Values> softmax =
      emitter_.loop(rows_, {}, [&](const Symbol* row, ValueRange) {
        return emitSoftmax(first, row, first_key, end);
      });
  if (failed(softmax)) return failure();
  emitWeightedSums(scores_, key_block_, packed_v_, value_size_, sums_,
                   /*accumulate=*/!one_block_, first_key, count);
  return Values();
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
  } else if (op_.getLse()) {
    memref::StoreOp::create(builder_, now, largest_.memref, row->value);
  }
  // A row that has seen no key yet keeps weights of 0.
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

}  // namespace partita::kernels
