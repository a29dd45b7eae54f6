// Scatters new keys and values into the cache, and attends over it.
#include "frontends/huggingface/cache.h"

#include <algorithm>

#include "mlir/Dialect/Arith/IR/Arith.h"

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

}  // namespace

Value writeHeads(Builder& b, Value states, Value places, Value x) {
  // Places of one number are positions in the row of the same index.
  const bool by_row = b.shapeOf(places).back() == 1;
  const Value rows = b.transpose(x, {0, 2, 1, 3});
  const Shape axes = by_row ? Shape{2} : Shape{0, 2};
  return nn::ScatterOp::create(b.ops(), b.loc(), states.getType(), states,
                               places, rows, axes, by_row ? 1 : 0,
                               nn::ScatterKind::set);
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

void ModelCache::append(const std::string& prefix, int64_t heads,
                        int64_t key_size, int64_t value_size,
                        ValueList& inputs) {
  if (!options_) return;
  const auto state = [&](const char* name, int64_t size) {
    names_.push_back(prefix + name);
    inputs.push_back(m_.state(names_.back(),
                              {options_->rows, heads, options_->length, size}));
  };
  state("keys", key_size);
  state("values", value_size);
  inputs.push_back(places_);
  if (seen_) inputs.push_back(seen_);
}

LayerCache ModelCache::at(ValueRange inputs) const {
  if (!options_) return {};
  const ValueRange last = inputs.take_back(seen_ ? 4 : 3);
  return {last[0], last[1], last[2], seen_ ? last[3] : Value()};
}

void ModelCache::update(Value keys, Value values) {
  m_.update(names_[names_.size() - 2], keys);
  m_.update(names_.back(), values);
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
  if (!cache.keys)
    return b.attention(q, k, v, bias, scale, /*causal=*/true, dropout, window);
  const bool by_row = cache.seen != nullptr;
  cache.keys = writeHeads(b, cache.keys, cache.places, k);
  cache.values = writeHeads(b, cache.values, cache.places, v);
  // Prompts begin at position 0, so that they see themselves only.
  if (!by_row)
    return b.attention(q, k, v, bias, scale, /*causal=*/true, 0.0, window);
  return attendSeen(b, q, cache.keys, cache.values, bias, scale, cache.seen);
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
