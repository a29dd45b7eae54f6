// Models that generate text keep the keys and values of earlier tokens.
//
// The cache of a layer is two states of @main, [rows, heads, length, size], and
// two of their scales, [rows, heads, length, 1], if keys and values are
// integers of 8 bits. A scale is the largest magnitude of its head and token,
// divided by 127. A row belongs to one text. The model is built twice, with
// the same states: `kPrompts` writes the prompts of some rows, `kTokens` adds
// one token to each row.
#ifndef PARTITA_FRONTENDS_HUGGINGFACE_CACHE_H_
#define PARTITA_FRONTENDS_HUGGINGFACE_CACHE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "frontends/huggingface/builder.h"
#include "frontends/huggingface/huggingface.h"

namespace partita::huggingface {

// Keys or values of a layer: f32, or integers and their scales.
struct CachedTensor {
  Value numbers;
  Value scales;  // null: numbers are f32
};

// A layer's keys and values, and the places of new ones. Without keys there is
// no cache.
struct LayerCache {
  CachedTensor keys, values;
  // Where new keys go: [batch, length, 2] of row and position for prompts,
  // [rows, 1, 1] of positions for tokens.
  Value places;
  Value seen;  // for tokens: [rows, length], 1 where the query sees the key

  explicit operator bool() const { return keys.numbers != nullptr; }
  // In the order in which ModelCache declares them.
  ValueList states() const;
};

// Sizes of a model's tokens.
struct TokenSizes {
  int64_t batch, length;
  int64_t positions;  // upper bound of positions, exclusive
};
TokenSizes tokenSizes(ModelBuilder& m,
                      const std::optional<CacheOptions>& options,
                      int64_t most_positions);

// The cache of a model.
class ModelCache {
 public:
  // Declares the inputs of a model with a cache for prompts of `batch` rows.
  // Without `options` there are no inputs, and layers have no cache.
  ModelCache(ModelBuilder& m, const std::optional<CacheOptions>& options,
             int64_t batch);

  explicit operator bool() const { return options_.has_value(); }
  bool takesTokens() const {
    return options_ && options_->step == CacheOptions::Step::kTokens;
  }
  Value positions() const { return positions_; }  // [rows], for tokens
  Value lengths() const { return lengths_; }      // [batch], for prompts
  Value places() const { return places_; }

  // Computes `places` and `seen` for all layers, from prompts of `length`
  // tokens. Call it after all inputs.
  void prepare(int64_t length, std::optional<int64_t> window);
  // Declares the states of the layer with this prefix.
  ValueList declare(const std::string& prefix, int64_t heads, int64_t key_size,
                    int64_t value_size);
  // The same, and appends its cache to the inputs of the layer's function.
  void append(const std::string& prefix, int64_t heads, int64_t key_size,
              int64_t value_size, ValueList& inputs);
  // The cache of a layer, from the last inputs of its function.
  LayerCache at(ValueRange inputs) const;
  // Keys and values in states that no step changes.
  LayerCache frozen(ValueRange states, Value seen) const;
  // States of a layer.
  int64_t count() const { return options_ && options_->is_int8 ? 4 : 2; }
  // Stores the states of the layer that was declared last, which are the last
  // of `results`, and removes them there. Without a cache, does nothing.
  void update(ValueList& results);

  // [rows, length] or [batch, length] of i32: 1 where a position is below the
  // row's number in `counts`.
  Value below(Value counts, int64_t length);

  // [batch, length, width] -> [batch, 1, width] of each prompt's last token; x
  // itself for tokens or without a cache.
  Value lastTokens(Value x);
  // Rows of a table [positions, ...]: those of the tokens, [rows, 1, ...], or
  // the first ones, [length, ...].
  Value atPositions(Value table, int64_t length);

 private:
  ModelBuilder& m_;
  const std::optional<CacheOptions> options_;
  std::vector<std::string> names_;  // of the states
  Value slots_, lengths_, positions_, places_, seen_;
};

// Attention of q, k and v [B, N, L, h] that adds k and v to the cache. Without
// a cache, it is Builder::attention.
Value attendWithCache(Builder& b, Value q, Value k, Value v, Value bias,
                      double scale, double dropout,
                      std::optional<int64_t> window, LayerCache& cache);
// `states` with the heads of x [B, N, L, h] written at `places`.
CachedTensor writeHeads(Builder& b, const CachedTensor& states, Value places,
                        Value x);
// The numbers as f32.
Value readHeads(Builder& b, const CachedTensor& states);
// Attention of one query per row over the keys where `seen` [B, S] is 1.
Value attendSeen(Builder& b, Value q, Value keys, Value values, Value bias,
                 double scale, Value seen);

}  // namespace partita::huggingface

#endif  // PARTITA_FRONTENDS_HUGGINGFACE_CACHE_H_
