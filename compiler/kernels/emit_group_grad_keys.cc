// For a block of keys: goes through the queries that see them, with products by
// a warpgroup (emit_warpgroup.h). Shah et al. (2024) have the same products;
// here they are transposed, so keys are rows.
//
//   scores S' = K Q'                 weights P'
//   given D' = V G'                  gradients dS' = P' (D' - d)
//   v_grad += P' G                   k_grad += dS' Q
//   q_grad of a tile += dS K
//
// The gradients of keys and values are sums in registers, as are P' and dS' as
// left operands. dS passes through shared memory. q_grad is a sum over blocks
// of keys in device memory, to which blocks add in turns (emit_turns.h).
//
// If their layout allows boxes, the tensor memory accelerator copies tiles of
// queries and of the result's gradient into a ring (emit_tile_ring.h). This is
// the fast path: otherwise each thread copies 16 bytes at a time, and starts to
// copy the next tile before it computes with this one.
#include "compiler/kernels/emit_mma_grad_key_blocks.h"
#include "compiler/kernels/emit_warpgroup.h"

namespace partita::kernels {
namespace {

using namespace mlir;

constexpr int64_t kStages = 2;

// Shared memory: a block's keys and values, gradients of a tile's scores, then
// tiles of queries and of the result's gradient.
struct Plan {
  explicit Plan(nn::AttentionGradOp op) {
    const int64_t size = shapeOf(op.getQ())[3],
                  value_size = shapeOf(op.getV())[3];
    int64_t end = 0;
    const auto place = [&](Tile& tile, int64_t columns) {
      tile = {end, kGroupRows, columns, 0, /*swizzled=*/true};
      end += tile.elements();
    };
    place(key, size);
    place(value, value_size);
    place(grads, kGroupRows);
    const int64_t first = end;
    place(query, size);
    place(given, value_size);
    buffer = end - first;
    bytes = bytesOf(elementOf(op.getQ())) * (first + kStages * buffer);
    // Results take the place of keys and values.
    const int64_t padding = paddingOf(elementOf(op.getQ()));
    key_sums = {0, kGradRows, size, padding};
    value_sums = {0, kGradRows, value_size, padding};
  }

  Tile key, value, grads, query, given, key_sums, value_sums;
  int64_t buffer;  // elements of `query` and `given`
  int64_t bytes;
};

class GroupGradKeys : private GradKeyBlocks {
 public:
  GroupGradKeys(Emitter& emitter, const GradKernel& kernel)
      : GroupGradKeys(emitter, kernel, Plan(kernel.op)) {}

  using GradKeyBlocks::range;

  FailureOr<Values> emitItem(const Symbol* item) {
    FailureOr<Value> first = takeItem(item);
    if (failed(first)) return failure();
    const Index index[] = {batch_, group_};
    if (failed(
            fragments_.fill(plan_.key, Value(), op_.getK(), index, *first)) ||
        failed(
            fragments_.fill(plan_.value, Value(), op_.getV(), index, *first)))
      return failure();
    fragments_.waitForTiles();
    FailureOr<Values> sums = forEachHead([&](Values carried) {
      return throughQueries(*first, std::move(carried));
    });
    if (failed(sums)) return failure();
    return storeResults(*sums, *first, plan_.key_sums, plan_.value_sums);
  }

 private:
  GroupGradKeys(Emitter& emitter, const GradKernel& kernel, const Plan& plan)
      : GradKeyBlocks(emitter, kernel, plan.bytes, plan.query.rows,
                      /*read_by_warpgroups=*/true),
        plan_(plan),
        warpgroup_(builder_, elementOf(op_.getQ()), fragments_.base()) {
    std::optional<TensorMap> queries =
        boxesOf(emitter, op_.getQ(), plan.query.rows);
    std::optional<TensorMap> given =
        boxesOf(emitter, op_.getResultGrad(), plan.given.rows);
    if (!queries || !given) return;
    ring_.emplace(
        emitter_, fragments_.base(), kStages, plan.buffer,
        ArrayRef<TileRing::Part>{{plan.query, *queries}, {plan.given, *given}},
        /*starts_later=*/causal_offset_ || lists_by_keys_,
        lists_by_keys_ ? lists_by_keys_->tiles() : Buffer());
  }

  FailureOr<Values> throughQueries(Value first, Values state) {
    FailureOr<SmallVector<Part>> parts = partsFor(first);
    if (failed(parts)) return failure();
    Value begin = parts->front().begin, end = parts->back().end;
    if (failed(beginTiles(begin, end))) return failure();
    for (const Part& part : *parts) {
      FailureOr<Values> next = emitter_.loop(
          part.begin, part.end, positions(), state,
          [&](const Symbol* position, ValueRange carried) -> FailureOr<Values> {
            Value place = numberOf(position->value, begin);
            if (failed(awaitTile(position->value, place, begin, end)))
              return failure();
            FailureOr<Values> sums = emitTile(first, position->value, place,
                                              Values(carried), part.masked);
            if (failed(sums)) return failure();
            if (ring_ && failed(ring_->release(place))) return failure();
            return sums;
          });
      if (failed(next)) return failure();
      state = *next;
    }
    if (ring_) {
      if (failed(ring_->close())) return failure();
    } else {
      fragments_.waitForTiles();
    }
    return state;
  }

  // --- Tiles of queries ---

  Value numberOf(Value position, Value begin) {
    return arith::SubIOp::create(builder_, position, begin);
  }

  // Elements before the buffer of the tile with this number.
  Value shiftOf(Value place) {
    if (ring_) return ring_->shiftOf(place);
    Value odd = arith::RemUIOp::create(builder_, place,
                                       emitter_.indexConstant(kStages));
    return multiply(odd, plan_.buffer);
  }

  LogicalResult beginTiles(Value begin, Value end) {
    if (!ring_) return fillTile(begin, emitter_.indexConstant(0));
    Value origin = lists_by_keys_ ? begin : multiply(begin, plan_.query.rows);
    return ring_->open(number(batch_), number(head_), numberOf(end, begin),
                       origin);
  }

  LogicalResult fillTile(Value position, Value place) {
    Value first = multiply(tileAt(position), plan_.query.rows),
          shift = shiftOf(place);
    const Index index[] = {batch_, head_};
    if (failed(fragments_.fill(plan_.query, shift, op_.getQ(), index, first)))
      return failure();
    return fragments_.fill(plan_.given, shift, op_.getResultGrad(), index,
                           first);
  }

  LogicalResult awaitTile(Value position, Value place, Value begin, Value end) {
    if (ring_) {
      ring_->await(place, numberOf(end, begin));
      return success();
    }
    fragments_.waitForTiles();
    Value next = add(position, 1);
    Value more =
        arith::CmpIOp::create(builder_, arith::CmpIPredicate::ult, next, end);
    return emitter_.branch(more, [&] { return fillTile(next, add(place, 1)); });
  }

  // --- A tile ---

  FailureOr<Values> emitTile(Value first_key, Value position, Value place,
                             Values state, bool masked) {
    const MutableArrayRef<Value> sums(state);
    const MutableArrayRef<Value> key_sums = sums.take_front(size_ / 8),
                                 value_sums = sums.drop_front(size_ / 8);
    Value shift = shiftOf(place), tile = tileAt(position),
          first_query = multiply(tile, plan_.query.rows);
    Values scores =
        warpgroup_.timesTransposed(plan_.key, 0, plan_.query, shift);
    warpgroup_.commit();
    Values given =
        warpgroup_.timesTransposed(plan_.value, 0, plan_.given, shift);
    warpgroup_.commit();
    scores = warpgroup_.wait(1, scores);
    const Values weights = weightsOf(scores, first_key, first_query, masked);
    const bool wants_values = buffers_[2].memref != nullptr;
    if (wants_values) {
      llvm::copy(
          warpgroup_.addTimes(leftOf(weights), plan_.given, shift, value_sums),
          value_sums.begin());
      warpgroup_.commit();
    }
    given = warpgroup_.wait(wants_values ? 1 : 0, given);
    Values grads = gradsOf(weights, given, first_query);
    hideMissingKeys(first_key, grads);
    if (turns_) putGrads(grads);
    const bool wants_keys = buffers_[1].memref != nullptr;
    if (wants_keys) {
      llvm::copy(
          warpgroup_.addTimes(leftOf(grads), plan_.query, shift, key_sums),
          key_sums.begin());
      warpgroup_.commit();
    }
    // Operands in flight take registers that the next sums need.
    if (wants_values)
      llvm::copy(warpgroup_.wait(0, value_sums), value_sums.begin());
    if (wants_keys) llvm::copy(warpgroup_.wait(0, key_sums), key_sums.begin());
    if (turns_ && failed(addQueries(tile, turnAt(position)))) return failure();
    return state;
  }

  // Weights by keys and queries, in the order of fragments.
  Values weightsOf(ArrayRef<Value> scores, Value first_key, Value first_query,
                   bool masked) {
    // A tile's queries from `begin` on see the key of a half, with a window up
    // to `end`. Both count from this thread's first query.
    Value begins[2], ends[2];
    Value own = add(first_query, multiply(fragments_.t(), 2));
    for (int64_t half = 0; masked && half < 2; ++half) {
      Value key = add(add(first_key, threadRow()), 8 * half);
      Value begin =
          arith::SubIOp::create(builder_, add(key, -*causal_offset_), own);
      begins[half] = toI32(begin);
      if (window_) ends[half] = toI32(add(begin, *window_));
    }
    Values weights;
    for (auto [eight, products] : llvm::enumerate(scores)) {
      const int64_t first = 8 * static_cast<int64_t>(eight);
      Value logarithms = loadStatistic(kLogarithm, add(own, first), 2);
      for (int64_t i = 0; i < 4; ++i) {
        Value score = scoreOf(scalar(products, i), Value());
        if (masked)
          score = maskFrom(score, first + i % 2, begins[i / 2], ends[i / 2]);
        weights.push_back(weightOf(score, scalar(logarithms, i % 2)));
      }
    }
    return weights;
  }

  Value toI32(Value index) {
    return arith::IndexCastOp::create(builder_, builder_.getI32Type(), index);
  }

  Values gradsOf(ArrayRef<Value> weights, ArrayRef<Value> given,
                 Value first_query) {
    Value own = add(first_query, multiply(fragments_.t(), 2));
    Values grads;
    for (auto [eight, products] : llvm::enumerate(given)) {
      Value means = loadStatistic(kMean, add(own, 8 * eight), 2);
      for (int64_t i = 0; i < 4; ++i)
        grads.push_back(scoreGrad(weights[grads.size()], scalar(products, i),
                                  scalar(means, i % 2)));
    }
    return grads;
  }

  // --- Gradients of queries ---

  void putGrads(ArrayRef<Value> grads) {
    for (size_t i = 0; i < grads.size(); i += 4)
      fragments_.put(
          vector::FromElementsOp::create(builder_, VectorType::get({4}, type_),
                                         grads.slice(i, 4)),
          plan_.grads, warpShift(plan_.grads), 2 * static_cast<int64_t>(i));
  }

  // Adds gradients of the scores times keys to the tile's sums, once it is this
  // block's turn. Warp w has the w-th 16 queries.
  LogicalResult addQueries(Value tile, Value turn) {
    if (failed(turns_->await(turnPlaceOf(tile), turn))) return failure();
    fragments_.shareTiles();
    Value is_first = isFirstTurn(tile, turn);
    const auto at = [&](int64_t eight) {
      return add(
          sumsOf(tile, fragments_.warp(), emitter_.indexConstant(eight / 2)),
          128 * (eight % 2));
    };
    Values sums;
    for (int64_t eight = 0; eight < size_ / 8; ++eight)
      sums.push_back(sumsBefore(at(eight), is_first));
    sums = warpgroup_.addTiles({plan_.grads, /*down=*/true}, 0,
                               {plan_.key, /*down=*/true}, Value(), sums);
    warpgroup_.commit();
    sums = warpgroup_.wait(0, sums);
    for (int64_t eight = 0; eight < size_ / 8; ++eight)
      storeSumsAt(sums[eight], at(eight));
    fragments_.sync();
    Value always =
        arith::ConstantOp::create(builder_, builder_.getBoolAttr(true));
    return turns_->pass(turnPlaceOf(tile), add(turn, 1), always);
  }

  Plan plan_;
  Warpgroup warpgroup_;
};

}  // namespace

FailureOr<int64_t> emitGroupGradKeys(Emitter& emitter, const GradKernel& kernel,
                                     Value begin, Value end) {
  return emitGradPart<GroupGradKeys>(emitter, kernel, begin, end);
}

}  // namespace partita::kernels
