// For a block of queries and a block of keys: sums the gradients of the scores
// over the batch, one element after the other.
#include "compiler/kernels/emit_mma_grad_parts.h"

namespace partita::kernels {
namespace {

using namespace mlir;

// Shared memory: queries and keys, then the result's gradient and values in the
// same place.
struct Plan {
  explicit Plan(nn::AttentionGradOp op) {
    const Type element = elementOf(op.getQ());
    // A thread's registers limit the number of keys.
    keys =
        std::max(shapeOf(op.getQ())[3], shapeOf(op.getV())[3]) <= 64 ? 64 : 32;
    const auto place = [&](int64_t size, Tile& left, Tile& right) {
      left = {0, kGradRows, size, paddingOf(element)};
      right = {left.elements(), keys, size, paddingOf(element)};
      return bytesOf(element) * (left.elements() + right.elements());
    };
    bytes = std::max(place(shapeOf(op.getQ())[3], query, key),
                     place(shapeOf(op.getV())[3], given, value));
  }

  int64_t keys;  // per block
  Tile query, key, given, value;
  int64_t bytes;
};

class GradBias : private MmaGradTiles {
 public:
  GradBias(Emitter& emitter, const GradKernel& kernel)
      : MmaGradTiles(emitter, kernel, Plan(kernel.op).bytes),
        plan_(kernel.op),
        key_blocks_((keys_ + plan_.keys - 1) / plan_.keys),
        flags_(flagsOf(kGradRows, plan_.keys)) {}

  int64_t range() const { return heads_ * layout_->blocks * key_blocks_; }

  FailureOr<Values> emitItem(const Symbol* item) {
    Index row, query_block, key_block;
    std::tie(row, key_block) = emitter_.split(Index(item), key_blocks_);
    std::tie(head_, query_block) = emitter_.split(row, layout_->blocks);
    group_ = emitter_.split(head_, heads_ / groups_).first;
    Value first_query = multiply(number(query_block), kGradRows),
          first_key = multiply(number(key_block), plan_.keys);
    Values sums(4 * plan_.keys / 8, f32(0));
    const auto body = [&](const Symbol* batch, ValueRange carried) {
      batch_ = Index(batch);
      return emitBatch(first_query, first_key, Values(carried));
    };
    FailureOr<Value> is_seen =
        isSeen(number(query_block), number(key_block), first_query, first_key);
    if (failed(is_seen)) return failure();
    FailureOr<Values> all =
        *is_seen ? emitter_.loop(
                       emitter_.indexConstant(0),
                       arith::SelectOp::create(builder_, *is_seen,
                                               emitter_.indexConstant(batches_),
                                               emitter_.indexConstant(0)),
                       batches_, sums, body)
                 : emitter_.loop(batches_, sums, body);
    if (failed(all)) return failure();
    for (auto [i, sum] : llvm::enumerate(*all))
      if (failed(store(sum, rowAt(first_query, i), columnAt(first_key, i))))
        return failure();
    return Values();
  }

 private:
  // False if causality, a window or the table of blocks hide all pairs of the
  // blocks, whose gradients are 0; null if there are no such masks.
  FailureOr<Value> isSeen(Value query_block, Value key_block, Value first_query,
                          Value first_key) {
    Value seen;
    const auto require = [&](Value condition) {
      seen = seen ? Value(arith::AndIOp::create(builder_, seen, condition))
                  : condition;
    };
    if (causal_offset_)
      require(
          arith::CmpIOp::create(builder_, arith::CmpIPredicate::ult, first_key,
                                endOfKeys(add(first_query, kGradRows - 1))));
    if (window_)
      require(arith::CmpIOp::create(builder_, arith::CmpIPredicate::ugt,
                                    add(first_key, plan_.keys),
                                    beginOfKeys(first_query)));
    if (!flags_) return seen;
    FailureOr<Value> flag = flags_->at(head_, query_block, key_block);
    if (failed(flag)) return failure();
    require(*flag);
    return seen;
  }

  // The query of this thread's i-th sum.
  Value rowAt(Value first, int64_t i) {
    return add(add(first, threadRow()), 8 * (i % 4 / 2));
  }
  Value columnAt(Value first, int64_t i) {
    return add(add(first, multiply(fragments_.t(), 2)), 8 * (i / 4) + i % 2);
  }

  // Rows of `left` * transposed rows of `right`, for a block.
  FailureOr<Values> product(const Tile& left_tile, Value left,
                            Value first_query, const Tile& right_tile,
                            Value right, Value first_key) {
    fragments_.sync();  // the previous content has been read
    if (failed(fragments_.fill(left_tile, Value(), left, {batch_, head_},
                               first_query)) ||
        failed(fragments_.fill(right_tile, Value(), right, {batch_, group_},
                               first_key)))
      return failure();
    fragments_.waitForTiles();
    return timesTransposed(leftFragments(left_tile, warpShift(left_tile), 1),
                           right_tile, Value());
  }

  FailureOr<Values> emitBatch(Value first_query, Value first_key, Values sums) {
    FailureOr<Values> products = product(plan_.query, op_.getQ(), first_query,
                                         plan_.key, op_.getK(), first_key),
                      given =
                          product(plan_.given, op_.getResultGrad(), first_query,
                                  plan_.value, op_.getV(), first_key);
    if (failed(products) || failed(given)) return failure();
    for (int64_t i = 0; i < static_cast<int64_t>(sums.size()); ++i) {
      Value query = rowAt(first_query, i), key = columnAt(first_key, i);
      FailureOr<Value> bias = biasOf(queryAt(query), key);
      if (failed(bias)) return failure();
      Value score = scoreOf(scalar((*products)[i / 4], i % 4), *bias);
      if (causal_offset_) score = maskKey(score, key, query);
      const auto known = [&](RowStatistic what) {
        return scalar(loadStatistic(what, query, 1), 0);
      };
      Value grad = scoreGrad(weightOf(score, known(kLogarithm)),
                             scalar((*given)[i / 4], i % 4), known(kMean));
      sums[i] = arith::AddFOp::create(builder_, sums[i], grad);
    }
    return sums;
  }

  LogicalResult store(Value sum, Value query, Value key) {
    const auto within = [&](Value a, int64_t end) -> Value {
      return arith::CmpIOp::create(builder_, arith::CmpIPredicate::ult, a,
                                   emitter_.indexConstant(end));
    };
    Value exists = arith::AndIOp::create(builder_, within(query, queries_),
                                         within(key, keys_));
    return emitter_.branch(exists, [&] {
      Symbol row, column;
      row.value = query;
      row.extent = queries_;
      column.value = key;
      column.extent = keys_;
      emitter_.store(buffers_[3],
                     linearize({Index(), head_, Index(emitter_.newSymbol(row)),
                                Index(emitter_.newSymbol(column))},
                               rowMajorStrides(shapeOf(op_.getBias()))),
                     {sum, 0});
      return success();
    });
  }

  Plan plan_;
  int64_t key_blocks_;
  std::optional<TileFlags> flags_;
};

}  // namespace

FailureOr<int64_t> emitMmaGradBias(Emitter& emitter, const GradKernel& kernel,
                                   Value begin, Value end) {
  return emitGradPart<GradBias>(emitter, kernel, begin, end);
}

}  // namespace partita::kernels
