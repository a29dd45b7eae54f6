// Products of tiles, and scores of attention as fragments of tensor cores.
#include "compiler/kernels/emit_mma_tiles.h"

#include <algorithm>
#include <limits>

#include "compiler/kernels/emit_warpgroup.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace partita::kernels {

using namespace mlir;

namespace {
constexpr double kLog2E = 1.4426950408889634;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
}  // namespace

KeyTiles::KeyTiles(Type element, int64_t size, int64_t value_size,
                   bool warpgroups) {
  if (warpgroups) {
    key = {0, kGroupRows, size, 0, /*swizzled=*/true};
    value = {key.elements(), kGroupRows, value_size, 0, /*swizzled=*/true};
    buffer = key.elements() + value.elements();
    return;
  }
  // Two buffers must fit the shared memory of a block, and scores the registers
  // of a thread.
  const int64_t largest = std::max(size, value_size),
                padding = paddingOf(element);
  const int64_t keys =
      element.isF32() ? (largest <= 32 ? 32 : 16) : (largest <= 80 ? 64 : 32);
  key = {0, keys, size, padding};
  value = {key.elements(), keys, value_size, padding};
  buffer = key.elements() + value.elements();
}

void MmaTiles::clampLimits() {
  if (!causal_offset_) return;
  const int64_t last = std::clamp(*causal_offset_, -queries_, keys_);
  if (window_)
    window_ =
        last - firstSeenKey(*causal_offset_, *window_, -queries_, keys_) + 1;
  causal_offset_ = last;
}

//===----------------------------------------------------------------------===//
// Loops over keys
//===----------------------------------------------------------------------===//

void MmaTiles::useRing(int64_t stages, const TensorMap& keys,
                       const TensorMap& values) {
  makeLists();
  ring_.emplace(
      emitter_, fragments_.base(), stages, tiles_.buffer,
      ArrayRef<TileRing::Part>{{tiles_.key, keys}, {tiles_.value, values}},
      /*starts_later=*/window_.has_value() || lists_,
      lists_ ? lists_->tiles() : Buffer());
}

LogicalResult MmaTiles::fillFirstKeys(Value first, bool with_values) {
  FailureOr<Span> span = spanOf(first);
  if (failed(span)) return failure();
  const Value begin = span->begin;
  if (ring_) {
    Value origin = begin;
    if (begin && !lists_) origin = multiply(begin, tiles_.key.rows);
    return ring_->open(number(batch_), number(group_),
                       numberOf(span->end, begin), origin);
  }
  return fillKeys(begin ? multiply(tileAt(begin), tiles_.key.rows)
                        : emitter_.indexConstant(0),
                  Value(), with_values);
}

LogicalResult MmaTiles::fillKeys(Value first, Value shift, bool with_values) {
  const Index index[] = {batch_, group_};
  if (failed(fragments_.fill(tiles_.key, shift, k_, index, first)))
    return failure();
  if (!with_values) return success();
  return fragments_.fill(tiles_.value, shift, v_, index, first);
}

std::optional<TileLists> MmaTiles::listsOf(int64_t query_rows, int64_t key_rows,
                                           bool by_keys) {
  if (!table_) return std::nullopt;
  return TileLists(
      emitter_, *table_,
      {queries_, keys_, query_rows, key_rows, causal_offset_, window_}, by_keys,
      first_head_);
}

std::optional<TileFlags> MmaTiles::flagsOf(int64_t query_rows,
                                           int64_t key_rows) {
  if (!table_) return std::nullopt;
  return TileFlags(
      emitter_, *table_,
      {queries_, keys_, query_rows, key_rows, causal_offset_, window_},
      first_head_);
}

void MmaTiles::makeLists() {
  if (std::exchange(has_made_lists_, true)) return;
  if (std::optional<TileLists> lists =
          listsOf(rows_, tiles_.key.rows, /*by_keys=*/false))
    lists_.emplace(*lists);
}

Value MmaTiles::tileAt(Value position) {
  return lists_ ? lists_->tileAt(position) : position;
}

FailureOr<MmaTiles::Span> MmaTiles::spanOf(Value first) {
  makeLists();
  const Value width = emitter_.indexConstant(tiles_.key.rows);
  if (lists_) {
    Value block =
        arith::DivUIOp::create(builder_, first, emitter_.indexConstant(rows_));
    FailureOr<TileLists::Range> range = lists_->rangeOf(head_, block);
    if (failed(range)) return failure();
    return Span{range->begin, range->end};
  }
  Value end = arith::CeilDivUIOp::create(builder_, visibleKeys(first), width);
  if (!window_) return Span{Value(), end};
  Value begin = arith::DivUIOp::create(builder_, beginOfKeys(first), width);
  return Span{emitter_.smaller(begin, (keys_ - 1) / tiles_.key.rows), end};
}

Value MmaTiles::numberOf(Value position, Value begin) {
  return begin ? Value(arith::SubIOp::create(builder_, position, begin))
               : position;
}

Value MmaTiles::bufferOf(Value tile) {
  if (ring_) return ring_->shiftOf(tile);
  Value odd = arith::RemUIOp::create(builder_, tile, emitter_.indexConstant(2));
  return multiply(odd, tiles_.buffer);
}

FailureOr<Values> MmaTiles::throughKeys(Value first, bool with_values,
                                        Values state, TileBody body) {
  const int64_t width = tiles_.key.rows;
  FailureOr<Span> span = spanOf(first);
  if (failed(span)) return failure();
  const Value begin = span->begin, end = span->end;
  const Value zero = emitter_.indexConstant(0);
  // The tiles that all queries see completely.
  Value whole = begin ? begin : zero;
  Value whole_end = arith::DivUIOp::create(builder_, endOfKeys(first),
                                           emitter_.indexConstant(width));
  struct Part {
    Value begin, end;
    bool masked;
  };
  SmallVector<Part> parts;
  const bool has_masked = causal_offset_ || keys_ % width != 0;
  if (lists_) whole_end = has_masked ? begin : end;
  if (window_ && !lists_) {
    whole =
        arith::CeilDivUIOp::create(builder_, beginOfKeys(add(first, rows_ - 1)),
                                   emitter_.indexConstant(width));
    whole = arith::MinUIOp::create(
        builder_, arith::MaxUIOp::create(builder_, whole, begin), end);
    whole_end = arith::MaxUIOp::create(builder_, whole_end, whole);
    parts.push_back({begin, whole, true});
  }
  if (!lists_ || !has_masked) parts.push_back({whole, whole_end, false});
  if (has_masked) parts.push_back({whole_end, end, true});
  for (const Part& part : parts) {
    FailureOr<Values> next =
        emitter_.loop(part.begin, part.end,
                      lists_ ? std::max<int64_t>(lists_->size(), 1)
                             : (keys_ + width - 1) / width,
                      state, [&](const Symbol* position, ValueRange carried) {
                        return emitTile(position->value, *span, with_values,
                                        part.masked, Values(carried), body);
                      });
    if (failed(next)) return failure();
    state = *next;
  }
  if (!ring_)
    fragments_.waitForTiles();
  else if (failed(ring_->close()))
    return failure();
  return state;
}

FailureOr<Values> MmaTiles::emitTile(Value position, const Span& span,
                                     bool with_values, bool masked,
                                     Values state, TileBody body) {
  Value first_key = multiply(tileAt(position), tiles_.key.rows);
  const Value place = numberOf(position, span.begin);
  if (ring_) {
    ring_->await(place, numberOf(span.end, span.begin));
    FailureOr<Values> next = body(bufferOf(place), first_key, masked, state);
    if (failed(next) || failed(ring_->release(place))) return failure();
    return next;
  }
  // Now this tile is complete, and no thread reads the other buffer.
  fragments_.waitForTiles();
  Value next = add(position, 1);
  Value more = arith::CmpIOp::create(builder_, arith::CmpIPredicate::ult, next,
                                     span.end);
  if (failed(emitter_.branch(more, [&] {
        return fillKeys(multiply(tileAt(next), tiles_.key.rows),
                        bufferOf(add(place, 1)), with_values);
      })))
    return failure();
  return body(bufferOf(place), first_key, masked, state);
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

FragmentList MmaTiles::leftFragments(const Tile& tile, Value shift,
                                     int64_t bands) {
  FragmentList fragments;
  for (int64_t band = 0; band < bands; ++band)
    for (int64_t column = 0; column < tile.columns; column += 16)
      fragments.push_back(fragments_.left(tile, shift, 16 * band, column));
  return fragments;
}

Values MmaTiles::timesTransposed(ArrayRef<Fragment> left, const Tile& tile,
                                 Value shift) {
  const int64_t steps = tile.columns / 16, width = tile.rows / 8,
                bands = static_cast<int64_t>(left.size()) / steps;
  Values sums(bands * width, fragments_.zero());
  for (int64_t step = 0; step < steps; ++step)
    for (int64_t row = 0; row < width; row += 2) {
      const Fragment right =
          fragments_.rightTransposed(tile, shift, 8 * row, 16 * step);
      for (int64_t half = 0; half < 2; ++half)
        for (int64_t band = 0; band < bands; ++band) {
          Value& sum = sums[band * width + row + half];
          sum =
              fragments_.multiply(left[band * steps + step], right, half, sum);
        }
    }
  return sums;
}

void MmaTiles::addTimes(ArrayRef<Fragment> left, const Tile& tile, Value shift,
                        MutableArrayRef<Value> sums) {
  const int64_t steps = tile.rows / 16, width = tile.columns / 8,
                bands = static_cast<int64_t>(left.size()) / steps;
  for (int64_t step = 0; step < steps; ++step)
    for (int64_t column = 0; column < width; column += 2) {
      const Fragment right =
          fragments_.right(tile, shift, 16 * step, 8 * column);
      for (int64_t half = 0; half < 2; ++half)
        for (int64_t band = 0; band < bands; ++band) {
          Value& sum = sums[band * width + column + half];
          sum =
              fragments_.multiply(left[band * steps + step], right, half, sum);
        }
    }
}

FragmentList MmaTiles::leftOf(ArrayRef<Value> floats) {
  FragmentList fragments;
  for (size_t i = 0; i < floats.size(); i += 8)
    fragments.push_back(fragments_.leftOf(floats.slice(i, 8)));
  return fragments;
}

Value MmaTiles::scaleRows(Value sums, Value upper, Value lower) {
  Value scales =
      vector::FromElementsOp::create(builder_, cast<VectorType>(sums.getType()),
                                     ValueRange{upper, upper, lower, lower});
  return arith::MulFOp::create(builder_, sums, scales);
}

//===----------------------------------------------------------------------===//
// Scores
//===----------------------------------------------------------------------===//

double MmaTiles::factor() const { return isPlain() ? scale_ * kLog2E : 1; }

Value MmaTiles::scaled(Value score) {
  if (factor() == 1) return score;
  return arith::MulFOp::create(builder_, score, f32(factor()));
}

Value MmaTiles::scoreOf(Value product, Value bias) {
  if (isPlain()) return product;
  const auto times = [&](Value a, double b) -> Value {
    return arith::MulFOp::create(builder_, a, f32(b));
  };
  Value score = times(product, softcap_ > 0 ? scale_ / softcap_ : scale_);
  if (softcap_ > 0)
    score = times(math::TanhOp::create(builder_, score), softcap_);
  if (bias) score = arith::AddFOp::create(builder_, score, bias);
  return times(score, kLog2E);
}

FailureOr<Lanes> MmaTiles::bias(const Symbol* query, Symbol key) {
  key.extent = keys_;
  IndexVector index = {batch_, head_, Index(query),
                       Index(emitter_.newSymbol(key))};
  const auto shape = cast<RankedTensorType>(bias_.getType()).getShape();
  for (auto [i, size] : llvm::zip_equal(index, shape))
    if (size == 1) i = Index();
  return emitter_.element(bias_, index);
}

FailureOr<Value> MmaTiles::biasOf(const Symbol* query, Value key) {
  if (!bias_) return Value();
  Symbol one;
  one.value = emitter_.smaller(key, keys_ - 1);
  FailureOr<Lanes> found = bias(query, one);
  if (failed(found)) return failure();
  return found->value;
}

FailureOr<Values> MmaTiles::biasesOf(const Symbol* query, Value key,
                                     bool masked) {
  if (!bias_) return Values(2);
  if (masked) {
    FailureOr<Value> first = biasOf(query, key),
                     second = biasOf(query, add(key, 1));
    if (failed(first) || failed(second)) return failure();
    return Values{*first, *second};
  }
  Symbol both;
  both.value = key;
  both.lanes = 2;
  FailureOr<Lanes> found = bias(query, both);
  if (failed(found)) return failure();
  Value vector = emitter_.splat(*found, 2);
  return Values{scalar(vector, 0), scalar(vector, 1)};
}

Value MmaTiles::endOfKeys(Value query) {
  Value end = emitter_.indexConstant(keys_);
  if (!causal_offset_) return end;
  Value seen = arith::MaxSIOp::create(builder_, add(query, *causal_offset_ + 1),
                                      emitter_.indexConstant(0));
  return arith::MinSIOp::create(builder_, seen, end);
}

Value MmaTiles::beginOfKeys(Value query) {
  return arith::MaxSIOp::create(builder_,
                                add(query, *causal_offset_ - *window_ + 1),
                                emitter_.indexConstant(0));
}

Value MmaTiles::maskKey(Value score, Value key, Value query) {
  Value sees = arith::CmpIOp::create(builder_, arith::CmpIPredicate::ult, key,
                                     endOfKeys(query));
  if (window_)
    sees = arith::AndIOp::create(
        builder_, sees,
        arith::CmpIOp::create(builder_, arith::CmpIPredicate::uge, key,
                              beginOfKeys(query)));
  return arith::SelectOp::create(builder_, sees, score, f32(-kInfinity));
}

Value MmaTiles::maskFrom(Value score, int64_t row, Value begin, Value end) {
  Value here = arith::ConstantOp::create(
      builder_, builder_.getI32IntegerAttr(static_cast<int32_t>(row)));
  Value sees;
  const auto require = [&](arith::CmpIPredicate predicate, Value bound) {
    if (!bound) return;
    Value holds = arith::CmpIOp::create(builder_, predicate, here, bound);
    sees = sees ? Value(arith::AndIOp::create(builder_, sees, holds)) : holds;
  };
  require(arith::CmpIPredicate::sge, begin);
  require(arith::CmpIPredicate::slt, end);
  return arith::SelectOp::create(builder_, sees, score, f32(-kInfinity));
}

const Symbol* MmaTiles::queryAt(Value query) {
  Symbol symbol;
  symbol.value = emitter_.smaller(query, queries_ - 1);
  symbol.extent = queries_;
  return emitter_.newSymbol(symbol);
}

FailureOr<Values> MmaTiles::runningWeights(ArrayRef<Value> products,
                                           ArrayRef<const Symbol*> rows,
                                           Value first_key, bool masked,
                                           Running running) {
  const int64_t eights = 2 * products.size() / rows.size();
  Values weights(4 * products.size());
  for (auto [row, query] : llvm::enumerate(rows)) {
    const int64_t band = row / 2, half = row % 2;
    const auto weightAt = [&](int64_t i) -> Value& {
      return weights[4 * (band * eights + i / 2) + 2 * half + i % 2];
    };
    Value& largest = running.largest[row];
    Value now = largest, own = add(first_key, multiply(fragments_.t(), 2));
    // Number of keys that the query sees from this thread's first one on. It
    // takes one register.
    Value begin, end;
    if (masked) {
      const auto narrow = [&](Value index) -> Value {
        return arith::IndexCastOp::create(builder_, builder_.getI32Type(),
                                          index);
      };
      end = arith::SubIOp::create(builder_, narrow(endOfKeys(query->value)),
                                  narrow(own));
      if (window_)
        begin = arith::SubIOp::create(
            builder_, narrow(beginOfKeys(query->value)), narrow(own));
    }
    for (int64_t eight = 0; eight < eights; ++eight) {
      Value sums = products[band * eights + eight];
      FailureOr<Values> bias = biasesOf(query, add(own, 8 * eight), masked);
      if (failed(bias)) return failure();
      for (int64_t i = 0; i < 2; ++i) {
        Value score = scoreOf(scalar(sums, 2 * half + i), (*bias)[i]);
        if (masked) score = maskFrom(score, 8 * eight + i, begin, end);
        weightAt(2 * eight + i) = score;
        now = arith::MaxNumFOp::create(builder_, now, score);
      }
    }
    now = fragments_.largestOfRow(now);
    Value shift = scaled(finite(now));
    Value scale = weightOf(largest, shift);
    largest = now;
    Value& sum = running.sums[row];
    sum = arith::MulFOp::create(builder_, sum, scale);
    for (int64_t i = 0; i < 2 * eights; ++i) {
      Value& weight = weightAt(i);
      weight = weightOf(weight, shift);
      sum = arith::AddFOp::create(builder_, sum, weight);
    }
    running.scales[row] = scale;
  }
  return weights;
}

Value MmaTiles::weightOf(Value score, Value shift) {
  return fragments_.exp2(arith::SubFOp::create(builder_, scaled(score), shift));
}

Value MmaTiles::scalar(Value sums, int64_t i) {
  return vector::ExtractOp::create(builder_, sums, i);
}

Value MmaTiles::f32(double value) { return emitter_.constant(type_, value); }

Value MmaTiles::finite(Value value) {
  Value none = arith::CmpFOp::create(builder_, arith::CmpFPredicate::OEQ, value,
                                     f32(-kInfinity));
  return arith::SelectOp::create(builder_, none, f32(0), value);
}

}  // namespace partita::kernels
