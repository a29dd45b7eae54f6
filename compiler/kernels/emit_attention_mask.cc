// Limits are numbers relative to a query's position, clamped so that they fit
// 32 bits: below -queries and from `keys` on, all limits hide the same keys.
#include "compiler/kernels/emit_attention_mask.h"

#include <algorithm>
#include <limits>

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace partita::kernels {

using namespace mlir;

namespace {

constexpr int64_t kSegmentKeys = 64;  // a multiple of all numbers of lanes

}  // namespace

AttentionMask::AttentionMask(Emitter& emitter, Value q, Value k,
                             std::optional<int64_t> causal_offset,
                             std::optional<int64_t> window)
    : emitter_(emitter),
      queries_(cast<RankedTensorType>(q.getType()).getDimSize(2)),
      keys_(cast<RankedTensorType>(k.getType()).getDimSize(2)),
      causal_offset_(causal_offset),
      window_(window) {
  if (!causal_offset) return;
  const auto clamp = [&](int64_t limit) {
    return Limit{std::clamp(limit, -queries_, keys_), {}};
  };
  last_ = clamp(*causal_offset);
  if (window) first_ = clamp(*causal_offset - (*window - 1));
}

LogicalResult AttentionMask::emitStart() {
  if (q_segments_) {
    const Type type = emitter_.builder().getI64Type();
    const int64_t parts = llvm::divideCeil(keys_, kSegmentKeys);
    lowest_ = emitter_.scratch(type, parts);
    highest_ = emitter_.scratch(type, parts);
  }
  if (!shift_) return success();
  FailureOr<Lanes> shift = emitter_.element(shift_, {});
  if (failed(shift)) return failure();
  ImplicitLocOpBuilder& builder = emitter_.builder();
  const Value position =
      arith::IndexCastOp::create(builder, builder.getIndexType(), shift->value);
  const auto limit = [&](int64_t offset) {
    Value moved = arith::AddIOp::create(builder, position,
                                        emitter_.indexConstant(offset));
    moved = arith::MaxSIOp::create(builder, moved,
                                   emitter_.indexConstant(-queries_));
    moved =
        arith::MinSIOp::create(builder, moved, emitter_.indexConstant(keys_));
    return Limit{0, moved};
  };
  last_ = limit(*causal_offset_);
  if (window_) first_ = limit(*causal_offset_ - (*window_ - 1));
  return success();
}

int64_t AttentionMask::span(int64_t rows) const {
  if (!window_ || *window_ >= keys_) return keys_;
  return std::min(keys_, *window_ + rows - 1);
}

Value AttentionMask::clamped(Value position, const Limit& limit) {
  ImplicitLocOpBuilder& builder = emitter_.builder();
  Value key = arith::AddIOp::create(builder, position,
                                    emitter_.indexConstant(limit.fixed));
  if (limit.moved) key = arith::AddIOp::create(builder, key, limit.moved);
  key = arith::MaxSIOp::create(builder, key, emitter_.indexConstant(0));
  return arith::MinSIOp::create(builder, key, emitter_.indexConstant(keys_));
}

FailureOr<Values> AttentionMask::segmentsOf(Value segments, const Index& batch,
                                            Value first, int64_t count) {
  ImplicitLocOpBuilder& builder = emitter_.builder();
  const Type type = builder.getI64Type();
  const int64_t rows = cast<RankedTensorType>(segments.getType()).getDimSize(1);
  const auto limit = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(builder,
                                     builder.getIntegerAttr(type, value));
  };
  const Value bounds[] = {limit(std::numeric_limits<int64_t>::max()),
                          limit(std::numeric_limits<int64_t>::min())};
  return emitter_.loop(
      count, bounds,
      [&](const Symbol* i, ValueRange carried) -> FailureOr<Values> {
        Symbol row;
        row.value = emitter_.smaller(
            arith::AddIOp::create(builder, first, i->value), rows - 1);
        row.extent = rows;
        FailureOr<Lanes> element =
            emitter_.element(segments, {batch, Index(emitter_.newSymbol(row))});
        if (failed(element)) return failure();
        Value segment = element->value;
        if (segment.getType() != type)
          segment = arith::ExtSIOp::create(builder, type, segment);
        return Values{arith::MinSIOp::create(builder, carried[0], segment),
                      arith::MaxSIOp::create(builder, carried[1], segment)};
      });
}

LogicalResult AttentionMask::emitSegments(const Index& batch) {
  if (!q_segments_) return success();
  ImplicitLocOpBuilder& builder = emitter_.builder();
  const int64_t parts = llvm::divideCeil(keys_, kSegmentKeys);
  return emitter_.loop(
      parts, {}, [&](const Symbol* part, ValueRange) -> FailureOr<Values> {
        FailureOr<Values> bounds = segmentsOf(
            k_segments_, batch,
            arith::MulIOp::create(builder, part->value,
                                  emitter_.indexConstant(kSegmentKeys)),
            kSegmentKeys);
        if (failed(bounds)) return failure();
        memref::StoreOp::create(builder, (*bounds)[0], lowest_.memref,
                                part->value);
        memref::StoreOp::create(builder, (*bounds)[1], highest_.memref,
                                part->value);
        return Values();
      });
}

FailureOr<AttentionMask::Range> AttentionMask::rangeOf(const Index& batch,
                                                       Value first,
                                                       int64_t rows,
                                                       int64_t lanes) {
  Range range = limitsOf(first, rows, lanes);
  if (!q_segments_) return range;
  ImplicitLocOpBuilder& builder = emitter_.builder();
  FailureOr<Values> seen = segmentsOf(q_segments_, batch, first, rows);
  if (failed(seen)) return failure();
  const Value size = emitter_.indexConstant(kSegmentKeys);
  // Begin and end of the keys that share segments with the queries.
  const Value none[] = {range.end, range.begin};
  FailureOr<Values> shared = emitter_.loop(
      arith::DivUIOp::create(builder, range.begin, size),
      arith::CeilDivUIOp::create(builder, range.end, size),
      llvm::divideCeil(keys_, kSegmentKeys), none,
      [&](const Symbol* part, ValueRange carried) -> FailureOr<Values> {
        const auto holds = [&](arith::CmpIPredicate predicate,
                               const Buffer& bounds, Value bound) -> Value {
          return arith::CmpIOp::create(
              builder, predicate,
              memref::LoadOp::create(builder, bounds.memref, part->value),
              bound);
        };
        const Value meets = arith::AndIOp::create(
            builder, holds(arith::CmpIPredicate::sle, lowest_, (*seen)[1]),
            holds(arith::CmpIPredicate::sge, highest_, (*seen)[0]));
        const Value begin = arith::MulIOp::create(builder, part->value, size);
        const Value end = arith::AddIOp::create(builder, begin, size);
        return Values{
            arith::SelectOp::create(
                builder, meets,
                arith::MinSIOp::create(builder, carried[0], begin), carried[0]),
            arith::SelectOp::create(
                builder, meets,
                arith::MaxSIOp::create(builder, carried[1], end), carried[1])};
      });
  if (failed(shared)) return failure();
  // A part may begin before the range and end after it.
  const Value begin =
      arith::MaxSIOp::create(builder, range.begin, (*shared)[0]);
  const Value end = arith::MinSIOp::create(builder, range.end, (*shared)[1]);
  const Value is_empty =
      arith::CmpIOp::create(builder, arith::CmpIPredicate::sge, begin, end);
  return Range{arith::SelectOp::create(builder, is_empty, range.begin, begin),
               arith::SelectOp::create(builder, is_empty, range.begin, end)};
}

AttentionMask::Range AttentionMask::limitsOf(Value first, int64_t rows,
                                             int64_t lanes) {
  ImplicitLocOpBuilder& builder = emitter_.builder();
  Range range = {emitter_.indexConstant(0), emitter_.indexConstant(keys_)};
  if (last_)
    range.end = clamped(
        arith::AddIOp::create(builder, first, emitter_.indexConstant(rows)),
        *last_);
  if (!first_) return range;
  const Value size = emitter_.indexConstant(lanes);
  range.begin = arith::MulIOp::create(
      builder, arith::DivUIOp::create(builder, clamped(first, *first_), size),
      size);
  range.end = arith::MaxSIOp::create(builder, range.begin, range.end);
  return range;
}

Value AttentionMask::limitOf(const Symbol* query, const Limit& limit,
                             int64_t lanes) {
  ImplicitLocOpBuilder& builder = emitter_.builder();
  Lanes key =
      emitter_.number(Index(query) + Index(limit.fixed), builder.getI32Type());
  if (limit.moved)
    key.value = arith::AddIOp::create(
        builder, key.value,
        arith::IndexCastOp::create(builder, builder.getI32Type(), limit.moved));
  return emitter_.splat(key, lanes);
}

FailureOr<Value> AttentionMask::apply(Value score, Value lowest,
                                      const Index& batch, const Symbol* query,
                                      const Symbol* keys) {
  ImplicitLocOpBuilder& builder = emitter_.builder();
  const int64_t lanes = cast<VectorType>(score.getType()).getNumElements();
  const auto keep = [&](arith::CmpIPredicate predicate, Value x, Value y) {
    score = arith::SelectOp::create(
        builder, arith::CmpIOp::create(builder, predicate, x, y), score,
        lowest);
  };
  if (last_) {
    const Value key = emitter_.number(Index(keys), builder.getI32Type()).value;
    keep(arith::CmpIPredicate::sle, key, limitOf(query, *last_, lanes));
    if (first_)
      keep(arith::CmpIPredicate::sge, key, limitOf(query, *first_, lanes));
  }
  if (q_segments_) {
    FailureOr<Lanes> of_query =
                         emitter_.element(q_segments_, {batch, Index(query)}),
                     of_keys =
                         emitter_.element(k_segments_, {batch, Index(keys)});
    if (failed(of_query) || failed(of_keys)) return failure();
    keep(arith::CmpIPredicate::eq, emitter_.splat(*of_query, lanes),
         emitter_.splat(*of_keys, lanes));
  }
  return score;
}

}  // namespace partita::kernels
