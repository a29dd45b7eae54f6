// For a block of keys: goes through the queries that see them, in all heads
// that share them. Scores are transposed, so that the gradients of keys and
// values stay in registers. The gradients of queries are sums over blocks of
// keys in device memory, to which blocks add in turns (emit_turns.h).
#include "compiler/kernels/emit_mma_grad_key_blocks.h"

namespace partita::kernels {
namespace {

using namespace mlir;

class GradKeys : private GradKeyBlocks {
 public:
  GradKeys(Emitter& emitter, const GradKernel& kernel)
      : GradKeys(emitter, kernel, KeysPlan(kernel.op, wantsQueries(kernel))) {}

  using GradKeyBlocks::range;

  FailureOr<Values> emitItem(const Symbol* item) {
    FailureOr<Value> first_key = takeItem(item);
    if (failed(first_key)) return failure();
    Value first = *first_key;
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
    FailureOr<Values> sums = forEachHead(
        [&](Values carried) { return throughQueries(first, carried); });
    if (failed(sums)) return failure();
    return storeResults(*sums, first, plan_.key, plan_.value);
  }

 private:
  GradKeys(Emitter& emitter, const GradKernel& kernel, const KeysPlan& plan)
      : GradKeyBlocks(emitter, kernel, plan.bytes, plan.query.rows),
        plan_(plan) {}

  FailureOr<Values> throughQueries(Value first, Values state) {
    FailureOr<SmallVector<Part>> parts = partsFor(first);
    if (failed(parts)) return failure();
    Value begin = parts->front().begin, end = parts->back().end;
    if (plan_.buffers > 1 && failed(fillQueries(begin))) return failure();
    for (const Part& part : *parts) {
      FailureOr<Values> next = emitter_.loop(
          part.begin, part.end, positions(), state,
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
    if (lists_by_keys_)
      before = arith::SelectOp::create(builder_, does, before, begin);
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
    hideMissingKeys(first_key, grads);
    for (size_t i = 0; i < grads.size(); i += 4)
      fragments_.put(
          vector::FromElementsOp::create(builder_, VectorType::get({4}, type_),
                                         ArrayRef(grads).slice(i, 4)),
          plan_.grads, warpShift(plan_.grads), 2 * static_cast<int64_t>(i));
  }

  // The sums of this warp's parts over the blocks of keys before this one.
  Values sumsBefore(Value tile, Value turn) {
    Value is_first = isFirstTurn(tile, turn);
    Values sums;
    for (int64_t part = 0; part < partsOfWarp(); ++part)
      for (int64_t half = 0; half < 2; ++half)
        sums.push_back(GradKeyBlocks::sumsBefore(
            add(sumsOf(tile, band(), columnOf(part)), 128 * half), is_first));
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
        for (int64_t half = 0; half < 2; ++half)
          storeSumsAt(halves[half],
                      add(sumsOf(tile, band(), column), 128 * half));
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
  FragmentList key_, value_;  // left fragments
};

}  // namespace

FailureOr<int64_t> emitMmaGradKeys(Emitter& emitter, const GradKernel& kernel,
                                   Value begin, Value end) {
  return emitGradPart<GradKeys>(emitter, kernel, begin, end);
}

}  // namespace partita::kernels
