// Scatters new keys and values into the cache, and attends over it.
#include "frontends/huggingface/cache.h"

#include <algorithm>

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace partita::huggingface {
namespace {

namespace arith = mlir::arith;

// `condition` as numbers 0 and 1 of i32.
Value asSegments(Builder& b, Value condition, ArrayRef<int64_t> shape) {
  return arith::ExtUIOp::create(
      b.ops(), b.loc(),
      mlir::RankedTensorType::get(shape, b.ops().getI32Type()), condition);
}

// [rows, length]: 1 at positions up to each row's own, and after those that a
// window hides.
Value seenKeys(Builder& b, Value positions, int64_t length,
               std::optional<int64_t> window) {
  const Shape shape = {b.shapeOf(positions)[0], length};
  const Value key = b.iota(shape, 1);
  const Value query = b.broadcast(positions, shape, {0});
  Value seen = arith::CmpIOp::create(b.ops(), b.loc(),
                                     arith::CmpIPredicate::sle, key, query);
  if (window) {
    const Value first = b.subIntegers(query, b.integerSplat(shape, *window));
    const Value near = arith::CmpIOp::create(
        b.ops(), b.loc(), arith::CmpIPredicate::sgt, key, first);
    seen = arith::AndIOp::create(b.ops(), b.loc(), seen, near);
  }
  return asSegments(b, seen, shape);
}

mlir::RankedTensorType typeOf(Value value) {
  return mlir::cast<mlir::RankedTensorType>(value.getType());
}

// x [B, N, L, h] as integers from -127 to 127, and their scales [B, N, L, 1].
CachedTensor toIntegers(Builder& b, Value x) {
  constexpr double kLargest = 127;
  Shape shape(b.shapeOf(x));
  const int64_t head = shape.pop_back_val();
  const Value largest = nn::ReduceOp::create(
      b.ops(), b.loc(), typeOf(x).clone(shape), nn::ReduceKind::max,
      mlir::math::AbsFOp::create(b.ops(), b.loc(), x), ArrayRef<int64_t>{3});
  // Not 0, which cannot divide; a denormal number could become 0.
  Value scales = b.atLeast(b.scale(largest, 1 / kLargest), 1e-30);
  const Value steps = b.div(x, b.broadcast(scales, b.shapeOf(x), {0, 1, 2}));
  shape.push_back(1);
  scales = b.reshape(scales, shape);
  shape.back() = head;
  return {arith::FPToSIOp::create(
              b.ops(), b.loc(), typeOf(x).clone(b.ops().getI8Type()),
              mlir::math::RoundEvenOp::create(b.ops(), b.loc(), steps)),
          scales};
}

// `state` [rows, N, length, h] with x [B, N, L, h] written at `places`.
Value write(Builder& b, Value state, Value places, Value x) {
  // Places of one number are positions in the row of the same index.
  const bool by_row = b.shapeOf(places).back() == 1;
  const Value rows = b.transpose(x, {0, 2, 1, 3});
  const Shape axes = by_row ? Shape{2} : Shape{0, 2};
  return nn::ScatterOp::create(b.ops(), b.loc(), state.getType(), state, places,
                               rows, axes, by_row ? 1 : 0,
                               nn::ScatterKind::set);
}

}  // namespace

CachedTensor writeHeads(Builder& b, const CachedTensor& states, Value places,
                        Value x) {
  if (!states.scales) return {write(b, states.numbers, places, x), {}};
  const CachedTensor added = toIntegers(b, x);
  return {write(b, states.numbers, places, added.numbers),
          write(b, states.scales, places, added.scales)};
}

Value readHeads(Builder& b, const CachedTensor& states) {
  if (!states.scales) return states.numbers;
  const Shape shape(b.shapeOf(states.numbers));
  const Value scales =
      b.reshape(states.scales, ArrayRef<int64_t>(shape).drop_back());
  return b.mul(b.toFloat(states.numbers),
               b.broadcast(scales, shape, {0, 1, 2}));
}

ValueList LayerCache::states() const {
  ValueList states;
  for (const CachedTensor* tensor : {&keys, &values}) {
    if (tensor->numbers) states.push_back(tensor->numbers);
    if (tensor->scales) states.push_back(tensor->scales);
  }
  return states;
}

TokenSizes tokenSizes(ModelBuilder& m,
                      const std::optional<CacheOptions>& options,
                      int64_t most_positions) {
  if (options && options->step == CacheOptions::Step::kTokens)
    return {options->rows, 1, options->length};
  const int64_t length = m.dim("seq", std::min<int64_t>(128, most_positions));
  if (options) m.expectAtMost("seq", length, options->length, "the cache");
  return {m.dim("batch", 1), length, length};
}

ModelCache::ModelCache(ModelBuilder& m,
                       const std::optional<CacheOptions>& options,
                       int64_t batch)
    : m_(m), options_(options) {
  if (!options_) return;
  if (takesTokens()) {
    positions_ = m.input("positions", {batch}, /*integer=*/true);
    return;
  }
  slots_ = m.input("slots", {batch}, /*integer=*/true);
  lengths_ = m.input("lengths", {batch}, /*integer=*/true);
}

void ModelCache::prepare(int64_t length, std::optional<int64_t> window) {
  if (!options_) return;
  if (takesTokens()) {
    places_ = m_.reshape(positions_, {options_->rows, 1, 1});
    seen_ = seenKeys(m_, positions_, options_->length, window);
    return;
  }
  const Shape shape = {m_.shapeOf(slots_)[0], length, 1};
  places_ = m_.concat({m_.broadcast(slots_, shape, {0}), m_.iota(shape, 1)}, 2);
}

ValueList ModelCache::declare(const std::string& prefix, int64_t heads,
                              int64_t key_size, int64_t value_size) {
  ValueList states;
  const auto declare = [&](const std::string& name, int64_t size,
                           mlir::Type element) {
    names_.push_back(prefix + name);
    states.push_back(m_.state(names_.back(),
                              {options_->rows, heads, options_->length, size},
                              element));
  };
  for (const auto& [name, size] :
       {std::pair("key", key_size), {"value", value_size}}) {
    declare(std::string(name) + "s", size,
            options_->is_int8 ? m_.ops().getI8Type() : mlir::Type());
    if (options_->is_int8) declare(std::string(name) + "_scales", 1, {});
  }
  return states;
}

void ModelCache::append(const std::string& prefix, int64_t heads,
                        int64_t key_size, int64_t value_size,
                        ValueList& inputs) {
  if (!options_) return;
  inputs.append(declare(prefix, heads, key_size, value_size));
  inputs.push_back(places_);
  if (seen_) inputs.push_back(seen_);
}

LayerCache ModelCache::at(ValueRange inputs) const {
  if (!options_) return {};
  Value seen;
  if (seen_) {
    seen = inputs.back();
    inputs = inputs.drop_back();
  }
  LayerCache cache = frozen(inputs.drop_back().take_back(count()), seen);
  cache.places = inputs.back();
  return cache;
}

LayerCache ModelCache::frozen(ValueRange states, Value seen) const {
  if (options_->is_int8)
    return {{states[0], states[1]}, {states[2], states[3]}, {}, seen};
  return {{states[0], {}}, {states[1], {}}, {}, seen};
}

void ModelCache::update(ValueList& results) {
  if (!options_) return;
  const size_t states = static_cast<size_t>(count());
  for (size_t i = 0; i < states; ++i)
    m_.update(names_[names_.size() - states + i],
              results[results.size() - states + i]);
  results.pop_back_n(states);
}

Value ModelCache::below(Value counts, int64_t length) {
  const Shape shape = {m_.shapeOf(counts)[0], length};
  const Value below = arith::CmpIOp::create(
      m_.ops(), m_.loc(), arith::CmpIPredicate::slt, m_.iota(shape, 1),
      m_.broadcast(counts, shape, {0}));
  return asSegments(m_, below, shape);
}

Value ModelCache::lastTokens(Value x) {
  if (!lengths_) return x;
  const Shape shape(m_.shapeOf(x));
  const Value last =
      m_.subIntegers(lengths_, m_.integerSplat(m_.shapeOf(lengths_), 1));
  const mlir::RankedTensorType type = mlir::RankedTensorType::get(
      {shape[0], 1, shape[2]},
      mlir::cast<mlir::RankedTensorType>(x.getType()).getElementType());
  return nn::GatherOp::create(m_.ops(), m_.loc(), type, x,
                              m_.reshape(last, {shape[0], 1, 1}),
                              ArrayRef<int64_t>{1}, /*batch_dims=*/1);
}

Value ModelCache::atPositions(Value table, int64_t length) {
  if (!takesTokens()) return m_.slice(table, 0, 0, length);
  Shape shape(m_.shapeOf(table));
  shape[0] = 1;
  shape.insert(shape.begin(), options_->rows);
  return m_.reshape(m_.rows(table, positions_), shape);
}

Value attendWithCache(Builder& b, Value q, Value k, Value v, Value bias,
                      double scale, double dropout,
                      std::optional<int64_t> window, LayerCache& cache) {
  if (!cache)
    return b.attention(q, k, v, bias, scale, /*causal=*/true, dropout, window);
  const bool by_row = cache.seen != nullptr;
  cache.keys = writeHeads(b, cache.keys, cache.places, k);
  cache.values = writeHeads(b, cache.values, cache.places, v);
  // Prompts begin at position 0, so that they see themselves only.
  if (!by_row)
    return b.attention(q, k, v, bias, scale, /*causal=*/true, 0.0, window);
  return attendSeen(b, q, readHeads(b, cache.keys), readHeads(b, cache.values),
                    bias, scale, cache.seen);
}

Value attendSeen(Builder& b, Value q, Value keys, Value values, Value bias,
                 double scale, Value seen) {
  Shape shape(b.shapeOf(q));
  shape.back() = b.shapeOf(values).back();
  const auto segments =
      mlir::RankedTensorType::get({shape[0], shape[2]}, b.ops().getI32Type());
  const Value ones = arith::ConstantOp::create(
      b.ops(), b.loc(), mlir::DenseElementsAttr::get(segments, 1));
  const auto type = mlir::RankedTensorType::get(
      shape, mlir::cast<mlir::RankedTensorType>(q.getType()).getElementType());
  return nn::AttentionOp::create(
             b.ops(), b.loc(), type, /*lse=*/mlir::Type(), q, keys, values,
             bias, /*shift=*/Value(), ones, seen, /*first_head=*/Value(),
             b.ops().getF64FloatAttr(scale),
             /*causal_offset=*/nullptr, /*window=*/nullptr,
             /*sinks=*/nullptr, /*blocks=*/nullptr,
             /*block_size=*/nullptr, b.ops().getF64FloatAttr(0.0))
      .getResult();
}

}  // namespace partita::huggingface
