// For a block of keys: goes through the queries that see them, in all heads
// that share them. Scores are transposed, so that the gradients of keys and
// values stay in registers.
#include "compiler/kernels/emit_mma_grad_parts.h"

namespace partita::kernels {
namespace {

using namespace mlir;

// Shared memory that a block has by default.
constexpr int64_t kMostBytes = 48 * 1024;

// Keys and values are kept as fragments if registers suffice; they are loaded
// through the second buffer of queries. Otherwise they stay in shared memory
// (`resident`).
struct Plan {
  explicit Plan(nn::AttentionGradOp op) {
    const int64_t size = shapeOf(op.getQ())[3],
                  value_size = shapeOf(op.getV())[3];
    const Type element = elementOf(op.getQ());
    const int64_t padding = paddingOf(element), width = bytesOf(element);
    resident = width * std::max(size, value_size) > 128;
    key = {0, kGradRows, size, padding};
    value = {key.elements(), kGradRows, value_size, padding};
    const int64_t pair = key.elements() + value.elements();
    // Scores of 64 queries leave too few registers for larger heads.
    const int64_t most = std::max(size, value_size) <= 32 ? 64 : 32;
    const std::pair<int64_t, int64_t> choices[] = {
        {most, 2}, {16, 2}, {32, 1}, {16, 1}};
    for (auto [rows, count] : choices) {
      const int64_t first = resident ? pair : 0;
      query = {first, rows, size, padding};
      given = {first + query.elements(), rows, value_size, padding};
      buffer = query.elements() + given.elements();
      buffers = count;
      bytes = width * (resident ? pair + count * buffer
                                : buffer + std::max(buffer, pair));
      if (bytes <= kMostBytes) break;
    }
    if (resident) return;
    key.first += buffer;
    value.first += buffer;
  }

  bool resident;
  Tile key, value, query, given;
  int64_t buffer;   // elements of `query` and `given`
  int64_t buffers;  // 2: while one is read, the next one is filled
  int64_t bytes;
};

class GradKeys : private MmaGradTiles {
 public:
  GradKeys(Emitter& emitter, nn::AttentionGradOp op, ArrayRef<Output> outputs,
           Value memory)
      : MmaGradTiles(emitter, op, outputs, memory, Plan(op).bytes),
        plan_(op),
        key_blocks_((keys_ + kGradRows - 1) / kGradRows) {}

  int64_t range() const { return batches_ * groups_ * key_blocks_; }

  LogicalResult emit(Value begin, Value end) {
    return emitter_.loop(
        begin, end, range(), {},
        [&](const Symbol* item, ValueRange) { return emitItem(item); });
  }

 private:
  FailureOr<Values> emitItem(const Symbol* item) {
    // With a causal mask, the first blocks are seen by most queries.
    auto [block, pair] = emitter_.split(Index(item), batches_ * groups_);
    std::tie(batch_, group_) = emitter_.split(pair, groups_);
    Value first = multiply(number(block), kGradRows);
    fragments_.sync();  // the previous content has been read
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

  // Goes through the tiles of queries of a head that see some of the keys. The
  // first ones do not see all keys, and with a window neither do the last ones.
  FailureOr<Values> throughQueries(Value first, Values state) {
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
    if (plan_.buffers > 1 && failed(fillQueries(begin))) return failure();
    struct Part {
      Value begin, end;
      bool masked;
    };
    SmallVector<Part> parts;
    if (causal_offset_) parts.push_back({begin, whole, true});
    parts.push_back({whole, whole_end, false});
    if (window_) parts.push_back({whole_end, end, true});
    for (const Part& part : parts) {
      FailureOr<Values> next = emitter_.loop(
          part.begin, part.end, tiles, state,
          [&](const Symbol* tile, ValueRange carried) -> FailureOr<Values> {
            if (failed(bringQueries(tile->value, end))) return failure();
            return emitTile(first, tile->value, Values(carried), part.masked);
          });
      if (failed(next)) return failure();
      state = *next;
    }
    fragments_.waitForTiles();
    return state;
  }

  Value bufferOf(Value tile) {
    if (plan_.buffers == 1) return Value();
    Value odd =
        arith::RemUIOp::create(builder_, tile, emitter_.indexConstant(2));
    return multiply(odd, plan_.buffer);
  }

  LogicalResult fillQueries(Value tile) {
    Value first = multiply(tile, plan_.query.rows), shift = bufferOf(tile);
    const Index index[] = {batch_, head_};
    if (failed(fragments_.fill(plan_.query, shift, op_.getQ(), index, first)))
      return failure();
    return fragments_.fill(plan_.given, shift, op_.getResultGrad(), index,
                           first);
  }

  // Waits for a tile, and begins to fill the next one if there is a buffer for
  // it.
  LogicalResult bringQueries(Value tile, Value end) {
    if (plan_.buffers == 1) {
      fragments_.sync();
      if (failed(fillQueries(tile))) return failure();
      fragments_.waitForTiles();
      return success();
    }
    fragments_.waitForTiles();
    Value next = add(tile, 1);
    Value more =
        arith::CmpIOp::create(builder_, arith::CmpIPredicate::ult, next, end);
    return emitter_.branch(more, [&] { return fillQueries(next); });
  }

  FailureOr<Values> emitTile(Value first_key, Value tile, Values state,
                             bool masked) {
    Value shift = bufferOf(tile);
    Values weights, grads;
    if (failed(emitScores(first_key, multiply(tile, plan_.query.rows), shift,
                          masked, weights, grads)))
      return failure();
    const MutableArrayRef<Value> sums(state);
    if (buffers_[2].memref)
      addTimes(leftOf(weights), plan_.given, shift, sums.drop_front(size_ / 8));
    if (buffers_[1].memref)
      addTimes(leftOf(grads), plan_.query, shift, sums.take_front(size_ / 8));
    return state;
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

  Plan plan_;
  int64_t key_blocks_;
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
