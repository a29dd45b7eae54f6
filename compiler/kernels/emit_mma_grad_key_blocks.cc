// Items, tiles of queries and results of blocks of keys.
#include "compiler/kernels/emit_mma_grad_key_blocks.h"

namespace partita::kernels {

using namespace mlir;

bool GradKeyBlocks::wantsQueries(const GradKernel& kernel) {
  nn::AttentionGradOp op = kernel.op;
  return llvm::any_of(kernel.outputs, [&](const Output& output) {
    return output.value == op.getQGrad();
  });
}

FailureOr<Value> GradKeyBlocks::takeItem(const Symbol* item) {
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
  return multiply(block_, kGradRows);
}

FailureOr<Values> GradKeyBlocks::forEachHead(
    llvm::function_ref<FailureOr<Values>(Values)> body) {
  const Values zeros((size_ + value_size_) / 8, fragments_.zero());
  const int64_t shared = heads_ / groups_;
  return emitter_.loop(shared, zeros,
                       [&](const Symbol* head, ValueRange carried) {
                         head_ = group_ * shared + Index(head);
                         return body(Values(carried));
                       });
}

FailureOr<Values> GradKeyBlocks::storeResults(ArrayRef<Value> sums, Value first,
                                              const Tile& key,
                                              const Tile& value) {
  if (buffers_[1].memref && failed(storeSums(sums.take_front(size_ / 8), scale_,
                                             key, 1, group_, first)))
    return failure();
  if (buffers_[2].memref &&
      failed(storeSums(sums.drop_front(size_ / 8), 1, value, 2, group_, first)))
    return failure();
  return Values();
}

FailureOr<SmallVector<GradKeyBlocks::Part>> GradKeyBlocks::partsFor(
    Value first) {
  if (lists_by_keys_) {
    FailureOr<TileLists::Range> range = lists_by_keys_->rangeOf(head_, block_);
    if (failed(range)) return failure();
    return SmallVector<Part>{
        {range->begin, range->end, causal_offset_.has_value()}};
  }
  const int64_t width = query_rows_, tiles = (queries_ + width - 1) / width;
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
      whole_end = arith::MaxUIOp::create(builder_, whole, tileOf(*window_, 0));
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

int64_t GradKeyBlocks::positions() const {
  return lists_by_keys_ ? std::max<int64_t>(lists_by_keys_->size(), 1)
                        : (queries_ + query_rows_ - 1) / query_rows_;
}

Value GradKeyBlocks::tileAt(Value position) {
  return lists_by_keys_ ? lists_by_keys_->tileAt(position) : position;
}

Value GradKeyBlocks::turnAt(Value position) {
  return lists_by_keys_ ? lists_by_keys_->rankAt(position) : block_;
}

void GradKeyBlocks::hideMissingKeys(Value first_key, Values& grads) {
  if (keys_ % kGradRows == 0) return;
  for (int64_t half = 0; half < 2; ++half) {
    Value exists =
        arith::CmpIOp::create(builder_, arith::CmpIPredicate::ult,
                              add(add(first_key, threadRow()), 8 * half),
                              emitter_.indexConstant(keys_));
    for (size_t i = 0; i < grads.size(); ++i)
      if (static_cast<int64_t>(i) % 4 / 2 == half)
        grads[i] = arith::SelectOp::create(builder_, exists, grads[i], f32(0));
  }
}

Value GradKeyBlocks::isFirstTurn(Value tile, Value turn) {
  return arith::CmpIOp::create(builder_, arith::CmpIPredicate::eq, turn,
                               firstTurnOf(tile));
}

Value GradKeyBlocks::sumsBefore(Value position, Value is_first) {
  return arith::SelectOp::create(builder_, is_first, fragments_.zero(),
                                 loadSums(position));
}

void GradKeyBlocks::storeSumsAt(Value sums, Value position) {
  auto stored = vector::StoreOp::create(builder_, sums, memory_, position);
  stored.setAlignmentAttr(builder_.getI64IntegerAttr(16));
}

}  // namespace partita::kernels
