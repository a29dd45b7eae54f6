// For a block of keys: goes through the queries that see them, in all heads
// that share them. Scores are transposed, so that the gradients of keys and
// values stay in registers. The gradients of queries are sums over blocks of
// keys in device memory, to which blocks add in turns (emit_turns.h).
#include "compiler/kernels/emit_mma_grad_parts.h"

namespace partita::kernels {
namespace {

using namespace mlir;

class GradKeys : private MmaGradTiles {
 public:
  GradKeys(Emitter& emitter, nn::AttentionGradOp op, ArrayRef<Output> outputs,
           Value memory)
      : MmaGradTiles(emitter, op, outputs, memory,
                     KeysPlan(op, wants(op, outputs)).bytes),
        plan_(op, wantsQueries()),
        key_blocks_((keys_ + kGradRows - 1) / kGradRows),
        lists_(listsOf(plan_.query.rows, kGradRows, /*by_keys=*/true)) {}

  int64_t range() const { return batches_ * groups_ * key_blocks_; }

  LogicalResult emit(Value begin, Value end) {
    return emitter_.loop(
        begin, end, range(), {},
        [&](const Symbol* item, ValueRange) { return emitItem(item); });
  }

 private:
  static bool wants(nn::AttentionGradOp op, ArrayRef<Output> outputs) {
    return llvm::any_of(outputs, [&](const Output& output) {
      return output.value == op.getQGrad();
    });
  }

  FailureOr<Values> emitItem(const Symbol* item) {
    fragments_.sync();  // the previous content has been read
    if (turns_) {
      FailureOr<Value> ticket = turns_->takeTicket();
      if (failed(ticket)) return failure();
      Symbol taken;
      taken.value = *ticket;
      taken.extent = range();
      item = emitter_.newSymbol(taken);
    }
    // With a causal mask, the first blocks are seen by most queries. Blocks add
    // to the gradients of queries in ascending order.
    auto [block, pair] = emitter_.split(Index(item), batches_ * groups_);
    std::tie(batch_, group_) = emitter_.split(pair, groups_);
    block_ = number(block);
    Value first = multiply(block_, kGradRows);
    const Index index[] = {batch_, group_};
    if (failed(fragments_.fill(plan_.key, Value(), op_.getK(), index, first)) ||
        failed(fragments_.fill(plan_.value, Value(), op_.getV(), index, first)))
      return failure();
    fragments_.waitForTiles();
    if (!plan_.resident) {
      key_ = leftFragments(plan_.key, warpShift(plan_.key), 1);
      value_ = leftFragments(plan_.value, warpShift(plan_.value), 1);
      fragments_.sync();
    }
    // Sums for keys, then for values.
    const Values zeros((size_ + value_size_) / 8, fragments_.zero());
    const int64_t shared = heads_ / groups_;
    FailureOr<Values> sums = emitter_.loop(
        shared, zeros, [&](const Symbol* head, ValueRange carried) {
          head_ = group_ * shared + Index(head);
          return throughQueries(first, Values(carried));
        });
    if (failed(sums)) return failure();
    const ArrayRef<Value> all(*sums);
    if (buffers_[1].memref &&
        failed(storeSums(all.take_front(size_ / 8), scale_, plan_.key, 1,
                         group_, first)))
      return failure();
    if (buffers_[2].memref && failed(storeSums(all.drop_front(size_ / 8), 1,
                                               plan_.value, 2, group_, first)))
      return failure();
    return Values();
  }

  // Tiles of queries, by their positions: in the list if there is one, else
  // their own numbers. Some queries do not see some keys if `masked`.
  struct Part {
    Value begin, end;
    bool masked;
  };

  // The tiles of queries of a head that see some of the keys. The first ones do
  // not see all keys, and with a window neither do the last ones.
  FailureOr<SmallVector<Part>> partsFor(Value first) {
    if (lists_) {
      FailureOr<TileLists::Range> range = lists_->rangeOf(head_, block_);
      if (failed(range)) return failure();
      return SmallVector<Part>{
          {range->begin, range->end, causal_offset_.has_value()}};
    }
    const int64_t width = plan_.query.rows,
                  tiles = (queries_ + width - 1) / width;
    Value end = emitter_.indexConstant(tiles);
    Value begin = emitter_.indexConstant(0), whole = begin, whole_end = end;
    if (causal_offset_) {
      // Queries from `key` on, in tiles.
      const auto tileOf = [&](int64_t key, int64_t round) -> Value {
        Value query =
            arith::MaxSIOp::create(builder_, add(first, key - *causal_offset_),
                                   emitter_.indexConstant(0));
        query = arith::DivUIOp::create(builder_, add(query, round),
                                       emitter_.indexConstant(width));
        return emitter_.smaller(query, tiles);
      };
      // The first tiles of queries that see the first key, and the last key.
      begin = tileOf(0, 0);
      whole = tileOf(kGradRows - 1, width - 1);
      if (window_) {
        // The end of the tiles that see the first key, and the last key.
        whole_end =
            arith::MaxUIOp::create(builder_, whole, tileOf(*window_, 0));
        end = tileOf(kGradRows - 1 + *window_, width - 1);
        whole = arith::MinUIOp::create(builder_, whole, end);
        whole_end = arith::MinUIOp::create(builder_, whole_end, end);
      }
    }
    SmallVector<Part> parts;
    if (causal_offset_) parts.push_back({begin, whole, true});
    parts.push_back({whole, whole_end, false});
    if (window_) parts.push_back({whole_end, end, true});
    return parts;
  }

  FailureOr<Values> throughQueries(Value first, Values state) {
    FailureOr<SmallVector<Part>> parts = partsFor(first);
    if (failed(parts)) return failure();
    Value begin = parts->front().begin, end = parts->back().end;
    if (plan_.buffers > 1 && failed(fillQueries(begin))) return failure();
    const int64_t width = plan_.query.rows,
                  positions = lists_ ? std::max<int64_t>(lists_->size(), 1)
                                     : (queries_ + width - 1) / width;
    for (const Part& part : *parts) {
      FailureOr<Values> next = emitter_.loop(
          part.begin, part.end, positions, state,
          [&](const Symbol* position, ValueRange carried) -> FailureOr<Values> {
            if (failed(bringQueries(position->value, begin, end)))
              return failure();
            return emitTile(first, position->value, Values(carried),
                            part.masked);
          });
      if (failed(next)) return failure();
      state = *next;
    }
    fragments_.waitForTiles();
    if (turns_ && failed(passTurn(end, begin))) return failure();
    return state;
  }

  Value tileAt(Value position) {
    return lists_ ? lists_->tileAt(position) : position;
  }
  // The turn of this block at a tile.
  Value turnAt(Value position) {
    return lists_ ? lists_->rankAt(position) : block_;
  }

  Value bufferOf(Value position) {
    if (plan_.buffers == 1) return Value();
    Value odd =
        arith::RemUIOp::create(builder_, position, emitter_.indexConstant(2));
    return multiply(odd, plan_.buffer);
  }

  LogicalResult fillQueries(Value position) {
    Value first = multiply(tileAt(position), plan_.query.rows),
          shift = bufferOf(position);
    const Index index[] = {batch_, head_};
    if (failed(fragments_.fill(plan_.query, shift, op_.getQ(), index, first)))
      return failure();
    return fragments_.fill(plan_.given, shift, op_.getResultGrad(), index,
                           first);
  }

  // Waits for a tile, and begins to fill the next one if there is a buffer for
  // it. Passes the turn at the tile before.
  LogicalResult bringQueries(Value position, Value begin, Value end) {
    if (plan_.buffers == 1) {
      fragments_.sync();
      if (turns_ && failed(passTurn(position, begin))) return failure();
      if (failed(fillQueries(position))) return failure();
      fragments_.waitForTiles();
      return success();
    }
    fragments_.waitForTiles();
    if (turns_ && failed(passTurn(position, begin))) return failure();
    Value next = add(position, 1);
    Value more =
        arith::CmpIOp::create(builder_, arith::CmpIPredicate::ult, next, end);
    return emitter_.branch(more, [&] { return fillQueries(next); });
  }

  // Passes the turn at the tile before `position`, if that is not before
  // `begin`. All threads have met since they added to it.
  LogicalResult passTurn(Value position, Value begin) {
    Value does = arith::CmpIOp::create(builder_, arith::CmpIPredicate::ult,
                                       begin, position);
    Value before =
        arith::SubIOp::create(builder_, position, emitter_.indexConstant(1));
    // Without a tile before, the list is read at `begin`.
    if (lists_) before = arith::SelectOp::create(builder_, does, before, begin);
    return turns_->pass(turnPlaceOf(tileAt(before)), add(turnAt(before), 1),
                        does);
  }

  FailureOr<Values> emitTile(Value first_key, Value position, Values state,
                             bool masked) {
    Value shift = bufferOf(position), tile = tileAt(position),
          turn = turnAt(position);
    Values weights, grads;
    if (failed(emitScores(first_key, multiply(tile, plan_.query.rows), shift,
                          masked, weights, grads)))
      return failure();
    Values before;
    if (turns_) {
      putGrads(first_key, grads);
      if (failed(turns_->await(turnPlaceOf(tile), turn))) return failure();
      fragments_.sync();
      before = sumsBefore(tile, turn);
    }
    const MutableArrayRef<Value> sums(state);
    if (buffers_[2].memref)
      addTimes(leftOf(weights), plan_.given, shift, sums.drop_front(size_ / 8));
    if (buffers_[1].memref)
      addTimes(leftOf(grads), plan_.query, shift, sums.take_front(size_ / 8));
    if (turns_ && failed(addQueries(tile, std::move(before)))) return failure();
    return state;
  }

  // --- Gradients of queries ---
  // A warp has some 16 x 16 parts of a tile, all in one band of 16 queries:
  // from column `columnOf(0)` on, each `columnStep()`-th.
  int64_t bands() const { return plan_.query.rows / 16; }
  int64_t columns() const { return size_ / 16; }
  int64_t columnStep() const { return kBlock / kWarp / bands(); }
  int64_t partsOfWarp() const {
    return (columns() + columnStep() - 1) / columnStep();
  }
  Value band() {
    return arith::RemUIOp::create(builder_, fragments_.warp(),
                                  emitter_.indexConstant(bands()));
  }
  // The column of a part; past the last one, the last one.
  Value columnOf(int64_t part) {
    Value column = add(arith::DivUIOp::create(builder_, fragments_.warp(),
                                              emitter_.indexConstant(bands())),
                       part * columnStep());
    return columns() % columnStep() == 0
               ? column
               : emitter_.smaller(column, columns() - 1);
  }

  // Stores gradients of scores as a tile. Keys past the last one have none.
  void putGrads(Value first_key, Values grads) {
    if (keys_ % kGradRows != 0)
      for (int64_t half = 0; half < 2; ++half) {
        Value exists =
            arith::CmpIOp::create(builder_, arith::CmpIPredicate::ult,
                                  add(add(first_key, threadRow()), 8 * half),
                                  emitter_.indexConstant(keys_));
        for (size_t i = 0; i < grads.size(); ++i)
          if (static_cast<int64_t>(i) % 4 / 2 == half)
            grads[i] =
                arith::SelectOp::create(builder_, exists, grads[i], f32(0));
      }
    for (size_t i = 0; i < grads.size(); i += 4)
      fragments_.put(
          vector::FromElementsOp::create(builder_, VectorType::get({4}, type_),
                                         ArrayRef(grads).slice(i, 4)),
          plan_.grads, warpShift(plan_.grads), 2 * static_cast<int64_t>(i));
  }

  // The sums of this warp's parts over the blocks of keys before this one.
  Values sumsBefore(Value tile, Value turn) {
    Value is_first = arith::CmpIOp::create(builder_, arith::CmpIPredicate::eq,
                                           turn, firstTurnOf(tile));
    Values sums;
    for (int64_t part = 0; part < partsOfWarp(); ++part)
      for (int64_t half = 0; half < 2; ++half)
        sums.push_back(arith::SelectOp::create(
            builder_, is_first, fragments_.zero(),
            loadSums(add(sumsOf(tile, band(), columnOf(part)), 128 * half))));
    return sums;
  }

  // Adds this block's gradients of the scores, times its keys.
  LogicalResult addQueries(Value tile, Values sums) {
    FragmentList left;
    for (int64_t key = 0; key < kGradRows; key += 16)
      left.push_back(
          fragments_.leftTransposed(plan_.grads, multiply(band(), 16), key, 0));
    for (int64_t part = 0; part < partsOfWarp(); ++part) {
      Value column = columnOf(part);
      const MutableArrayRef<Value> halves(&sums[2 * part], 2);
      for (auto [step, grads] : llvm::enumerate(left)) {
        const Fragment right = fragments_.rightInOrder(
            plan_.key, multiply(column, 16), 16 * step, 0);
        for (int half = 0; half < 2; ++half)
          halves[half] = fragments_.multiply(grads, right, half, halves[half]);
      }
      const auto store = [&] {
        for (int64_t half = 0; half < 2; ++half) {
          auto stored = vector::StoreOp::create(
              builder_, halves[half], memory_,
              add(sumsOf(tile, band(), column), 128 * half));
          stored.setAlignmentAttr(builder_.getI64IntegerAttr(16));
        }
        return success();
      };
      const int64_t last = (part + 1) * columnStep();
      if (last <= columns()) {
        (void)store();
        continue;
      }
      // Some warps have no part here.
      Value exists = arith::CmpIOp::create(
          builder_, arith::CmpIPredicate::ult, fragments_.warp(),
          emitter_.indexConstant((columns() - part * columnStep()) * bands()));
      if (failed(emitter_.branch(exists, store))) return failure();
    }
    return success();
  }

  // Weights and gradients of scores, by keys and queries, in the order of
  // fragments.
  LogicalResult emitScores(Value first_key, Value first_query, Value shift,
                           bool masked, Values& weights, Values& grads) {
    if (plan_.resident)
      key_ = leftFragments(plan_.key, warpShift(plan_.key), 1);
    const Values products = timesTransposed(key_, plan_.query, shift);
    if (plan_.resident)
      value_ = leftFragments(plan_.value, warpShift(plan_.value), 1);
    const Values given = timesTransposed(value_, plan_.given, shift);
    for (auto [eight, product] : llvm::enumerate(products)) {
      Value query =
          add(add(first_query, multiply(fragments_.t(), 2)), 8 * eight);
      Value logarithms = loadStatistic(kLogarithm, query, 2),
            means = loadStatistic(kMean, query, 2);
      for (int64_t i = 0; i < 4; ++i) {
        Value key = add(add(first_key, threadRow()), 8 * (i / 2));
        Value this_query = add(query, i % 2);
        FailureOr<Value> bias = biasOf(queryAt(this_query), key);
        if (failed(bias)) return failure();
        Value score = scoreOf(scalar(product, i), *bias);
        if (masked) score = maskKey(score, key, this_query);
        weights.push_back(weightOf(score, scalar(logarithms, i % 2)));
        grads.push_back(scoreGrad(weights.back(), scalar(given[eight], i),
                                  scalar(means, i % 2)));
      }
    }
    return success();
  }

  KeysPlan plan_;
  int64_t key_blocks_;
  std::optional<TileLists> lists_;
  Value block_;               // number of the block of keys
  FragmentList key_, value_;  // left fragments
};

}  // namespace

FailureOr<int64_t> emitMmaGradKeys(Emitter& emitter, nn::AttentionGradOp op,
                                   ArrayRef<Output> outputs, Value memory,
                                   Value begin, Value end) {
  GradKeys keys(emitter, op, outputs, memory);
  if (failed(keys.emit(begin, end))) return failure();
  return keys.range();
}

}  // namespace partita::kernels
