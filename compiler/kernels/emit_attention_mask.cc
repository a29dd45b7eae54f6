// Limits are numbers relative to a query's position, clamped so that they fit
// 32 bits: below -queries and from `keys` on, all limits hide the same keys.
#include "compiler/kernels/emit_attention_mask.h"

#include <algorithm>
#include <limits>

#include "llvm/Support/MathExtras.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace partita::kernels {

using namespace mlir;

namespace {

constexpr int64_t kSegmentKeys = 64;  // a multiple of all numbers of lanes
// Further than any key; a shift can be added.
constexpr int64_t kFarthest = int64_t{1} << 62;

}  // namespace

int64_t firstSeenKey(int64_t causal_offset, int64_t window, int64_t lowest,
                     int64_t highest) {
  int64_t first;
  if (llvm::SubOverflow(causal_offset, window - 1, first)) return lowest;
  return std::clamp(first, lowest, highest);
}

AttentionMask::AttentionMask(Emitter& emitter, Value q, Value k,
                             std::optional<int64_t> causal_offset,
                             std::optional<int64_t> window)
    : emitter_(emitter),
      queries_(cast<RankedTensorType>(q.getType()).getDimSize(2)),
      keys_(cast<RankedTensorType>(k.getType()).getDimSize(2)),
      causal_offset_(causal_offset),
      window_(window) {
  if (!causal_offset) return;
  last_ = Limit{std::clamp(*causal_offset, -queries_, keys_), {}};
  if (window)
    first_ = Limit{firstSeenKey(*causal_offset, *window, -queries_, keys_), {}};
}

LogicalResult AttentionMask::emitStart() {
  if (q_segments_) {
    const Type type = emitter_.builder().getI64Type();
    const int64_t parts = llvm::divideCeil(keys_, kSegmentKeys);
    lowest_ = emitter_.scratch(type, parts);
    highest_ = emitter_.scratch(type, parts);
  }
  ImplicitLocOpBuilder& builder = emitter_.builder();
  if (sinks_ || table_)
    for (Buffer* list : {&begins_, &ends_, &columns_})
      *list = emitter_.scratch(builder.getI64Type(), partsLimit() + 1);
  if (table_) visible_ = emitter_.constantArray(blocks_);
  const auto scalar = [&](Value tensor) -> FailureOr<Value> {
    FailureOr<Lanes> element = emitter_.element(tensor, {});
    if (failed(element)) return failure();
    return Value(arith::IndexCastOp::create(builder, builder.getIndexType(),
                                            element->value));
  };
  if (first_head_) {
    FailureOr<Value> number = scalar(first_head_);
    if (failed(number)) return failure();
    head_offset_ = *number;
  }
  if (!shift_) return success();
  FailureOr<Value> shift = scalar(shift_);
  if (failed(shift)) return failure();
  position_ = *shift;
  if (!causal_offset_) return success();
  const auto limit = [&](int64_t offset) {
    Value moved = arith::AddIOp::create(builder, position_,
                                        emitter_.indexConstant(offset));
    moved = arith::MaxSIOp::create(builder, moved,
                                   emitter_.indexConstant(-queries_));
    moved =
        arith::MinSIOp::create(builder, moved, emitter_.indexConstant(keys_));
    return Limit{0, moved};
  };
  last_ = limit(*causal_offset_);
  if (window_)
    first_ =
        limit(firstSeenKey(*causal_offset_, *window_, -kFarthest, kFarthest));
  return success();
}

int64_t AttentionMask::span(int64_t rows, int64_t lanes) const {
  const int64_t all = llvm::divideCeil(keys_, lanes) * lanes;
  if (table_ && hasParts(lanes)) {
    // The queries are those of some rows of the table in succession.
    const int64_t size = table_->size(),
                  height = std::min(llvm::divideCeil(rows - 1, size) + 1,
                                    static_cast<uint64_t>(table_->rows()));
    int64_t most = 0;
    for (int64_t head = 0; head < table_->heads(); ++head)
      for (int64_t row = 0; row + height <= table_->rows(); ++row) {
        int64_t columns = 0;
        for (int64_t column = 0; column < table_->columns(); ++column) {
          bool is_visible = false;
          for (int64_t i = 0; i < height; ++i)
            is_visible |= table_->holds(head, row + i, column);
          columns += is_visible;
        }
        most = std::max(most, columns);
      }
    return std::min(all, most * size);
  }
  // Small blocks with sinks are not skipped.
  if (!window_ || *window_ >= keys_ || (table_ && sinks_)) return keys_;
  // Both ends of a window's keys are rounded.
  int64_t span = *window_ + rows - 1;
  if (sinks_) span += llvm::divideCeil(*sinks_, lanes) * lanes + 2 * lanes;
  return std::min(sinks_ ? all : keys_, span);
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
  // The blocks of a table may hold sinks.
  if (!first_ || (sinks_ && table_)) return range;
  const Value size = emitter_.indexConstant(lanes);
  range.begin = arith::MulIOp::create(
      builder, arith::DivUIOp::create(builder, clamped(first, *first_), size),
      size);
  range.end = arith::MaxSIOp::create(builder, range.begin, range.end);
  return range;
}

void AttentionMask::storePart(Value number, Value begin, Value end,
                              Value column) {
  ImplicitLocOpBuilder& builder = emitter_.builder();
  for (auto [list, value] :
       {std::pair(&begins_, begin), {&ends_, end}, {&columns_, column}})
    memref::StoreOp::create(
        builder,
        arith::IndexCastOp::create(builder, builder.getI64Type(), value),
        list->memref, number);
}

AttentionMask::Part AttentionMask::part(Value number) {
  ImplicitLocOpBuilder& builder = emitter_.builder();
  const auto entry = [&](const Buffer& list) -> Value {
    return arith::IndexCastOp::create(
        builder, builder.getIndexType(),
        memref::LoadOp::create(builder, list.memref, number));
  };
  return {{entry(begins_), entry(ends_)}, entry(columns_)};
}

void AttentionMask::emitSinkParts(const Range& range, int64_t lanes) {
  ImplicitLocOpBuilder& builder = emitter_.builder();
  const int64_t sinks = std::min<int64_t>(llvm::divideCeil(*sinks_, lanes),
                                          llvm::divideCeil(keys_, lanes)) *
                        lanes;
  const Value zero = emitter_.indexConstant(0);
  // The window begins at a multiple of the lanes.
  const Value end = arith::MinSIOp::create(
      builder, emitter_.indexConstant(sinks), range.begin);
  storePart(zero, zero, end, zero);
  storePart(emitter_.indexConstant(1), range.begin, range.end, end);
}

Index AttentionMask::tableHead(const Index& head) {
  if (table_->heads() == 1) return Index();
  if (!head_offset_) return head;
  ImplicitLocOpBuilder& builder = emitter_.builder();
  const Value number = arith::AddIOp::create(
      builder, emitter_.number(head, builder.getIndexType()).value,
      head_offset_);
  return Index(emitter_.clampedSymbol({number, 0}, table_->heads(), {}));
}

const Symbol* AttentionMask::tableRow(Value position) {
  ImplicitLocOpBuilder& builder = emitter_.builder();
  if (position_) position = arith::AddIOp::create(builder, position, position_);
  position =
      arith::MaxSIOp::create(builder, position, emitter_.indexConstant(0));
  const Value row = arith::DivUIOp::create(
      builder, position, emitter_.indexConstant(table_->size()));
  return emitter_.clampedSymbol({row, 0}, table_->rows(), {});
}

Lanes AttentionMask::loadBlock(const Index& head, const Index& row,
                               const Index& column) {
  return emitter_.load(visible_, head * (table_->rows() * table_->columns()) +
                                     row * table_->columns() + column);
}

FailureOr<Value> AttentionMask::emitParts(const Range& range, const Index& head,
                                          Value first, int64_t rows,
                                          int64_t lanes) {
  if (!table_) {
    emitSinkParts(range, lanes);
    return emitter_.indexConstant(2);
  }
  ImplicitLocOpBuilder& builder = emitter_.builder();
  const int64_t size = table_->size();
  parts_are_exact_ = !position_ && size % rows == 0;
  const Index of_table = tableHead(head);
  SmallVector<const Symbol*> table_rows;
  for (int64_t row = 0; row < rows; row += size)
    table_rows.push_back(tableRow(
        arith::AddIOp::create(builder, first, emitter_.indexConstant(row))));
  if (rows > 1)
    table_rows.push_back(tableRow(arith::AddIOp::create(
        builder, first, emitter_.indexConstant(rows - 1))));
  const Value zero = emitter_.indexConstant(0),
              block = emitter_.indexConstant(size),
              one = emitter_.indexConstant(1);
  const Value none[] = {zero, zero, zero};  // parts, end of the last, columns
  FailureOr<Values> done = emitter_.loop(
      arith::DivUIOp::create(builder, range.begin, block),
      arith::CeilDivUIOp::create(builder, range.end, block), table_->columns(),
      none, [&](const Symbol* column, ValueRange carried) -> FailureOr<Values> {
        Value sees;
        for (const Symbol* row : table_rows) {
          const Value holds =
              loadBlock(of_table, Index(row), Index(column)).value;
          sees =
              sees ? Value(arith::OrIOp::create(builder, sees, holds)) : holds;
        }
        Value begin = arith::MulIOp::create(builder, column->value, block);
        Value end = arith::AddIOp::create(builder, begin, block);
        begin = arith::MaxSIOp::create(builder, begin, range.begin);
        end = arith::MinSIOp::create(builder, end, range.end);
        // A block that follows the last part becomes part of it. A hidden one
        // is stored behind the last part, where the next one replaces it.
        const Value has_parts = arith::CmpIOp::create(
            builder, arith::CmpIPredicate::ugt, carried[0], zero);
        const Value follows = arith::AndIOp::create(
            builder, has_parts,
            arith::AndIOp::create(
                builder, sees,
                arith::CmpIOp::create(builder, arith::CmpIPredicate::eq, begin,
                                      carried[1])));
        const Value last = arith::SelectOp::create(
            builder, has_parts, arith::SubIOp::create(builder, carried[0], one),
            zero);
        const Value number =
            arith::SelectOp::create(builder, follows, last, carried[0]);
        const Part before = part(last);
        storePart(
            number,
            arith::SelectOp::create(builder, follows, before.keys.begin, begin),
            end,
            arith::SelectOp::create(builder, follows, before.column,
                                    carried[2]));
        const Value width = arith::SubIOp::create(builder, end, begin);
        const Value next = arith::AddIOp::create(builder, number, one);
        return Values{
            arith::SelectOp::create(builder, sees, next, carried[0]),
            arith::SelectOp::create(builder, sees, end, carried[1]),
            arith::SelectOp::create(
                builder, sees,
                arith::AddIOp::create(builder, carried[2], width), carried[2])};
      });
  if (failed(done)) return failure();
  return (*done)[0];
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
                                      const Index& batch, const Index& head,
                                      const Symbol* query, const Symbol* keys) {
  ImplicitLocOpBuilder& builder = emitter_.builder();
  const int64_t lanes = cast<VectorType>(score.getType()).getNumElements();
  const auto keep = [&](arith::CmpIPredicate predicate, Value x, Value y) {
    score = arith::SelectOp::create(
        builder, arith::CmpIOp::create(builder, predicate, x, y), score,
        lowest);
  };
  if (last_) {
    const Value key = emitter_.splat(
        emitter_.number(Index(keys), builder.getI32Type()), lanes);
    keep(arith::CmpIPredicate::sle, key, limitOf(query, *last_, lanes));
    if (first_) {
      Value first = limitOf(query, *first_, lanes);
      if (sinks_) {  // a sink is behind every first key
        const Value sinks =
            emitter_.constant(builder.getI32Type(), *sinks_, lanes);
        first = arith::SelectOp::create(
            builder,
            arith::CmpIOp::create(builder, arith::CmpIPredicate::slt, key,
                                  sinks),
            key, first);
      }
      keep(arith::CmpIPredicate::sge, key, first);
    }
  }
  if (table_ && !parts_are_exact_) {
    const Value position =
        emitter_.number(Index(query), builder.getIndexType()).value;
    const Lanes holds =
        loadBlock(tableHead(head), Index(tableRow(position)),
                  emitter_.split(Index(keys), table_->size()).first);
    score = arith::SelectOp::create(builder, emitter_.splat(holds, lanes),
                                    score, lowest);
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
