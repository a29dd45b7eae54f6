// T5: encoder and decoder with relative position buckets, RMS norms and
// unscaled attention (Raffel et al., 2020). Switch Transformers have experts in
// some of its layers (Fedus et al., 2021).
#include <cmath>

#include "dialects/nn/result_names.h"
#include "frontends/huggingface/builder.h"
#include "frontends/huggingface/cache.h"
#include "frontends/huggingface/models.h"
#include "frontends/huggingface/sparse_mlp.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace partita::huggingface {
namespace {

struct T5Config {
  // `default_layers`: the decoder's, of a config without them; absent: as many
  // as the encoder's, which null stands for in any model.
  T5Config(Config& config, std::optional<double> forced,
           std::optional<int64_t> default_layers)
      : vocabulary(config.size("vocab_size")),
        width(config.size("d_model")),
        head(config.size("d_kv")),
        inner(config.size("d_ff")),
        layers(config.layers("num_layers")),
        decoder_layers(config.layers("num_decoder_layers",
                                     config.isNull("num_decoder_layers")
                                         ? layers
                                         : default_layers.value_or(layers))),
        heads(config.size("num_heads")),
        buckets(config.size("relative_attention_num_buckets", 32)),
        distance(config.size("relative_attention_max_distance", 128)),
        epsilon(config.number("layer_norm_epsilon", 1e-6)),
        dropout(config.dropout("dropout_rate", forced)),
        tied(config.flag("tie_word_embeddings", true)),
        scaled(tied) {
    if (buckets < 4 || buckets % 2 != 0)
      config.complain(
          "'relative_attention_num_buckets': expected an even number of at "
          "least 4, found " +
          std::to_string(buckets));
    if (distance <= buckets / 2)
      config.complain(
          "'relative_attention_max_distance': expected more than half the "
          "buckets, found " +
          std::to_string(distance));
  }

  int64_t vocabulary, width, head, inner, layers, decoder_layers, heads,
      buckets, distance;
  double epsilon, dropout;
  bool tied, scaled, gated = false;
  std::string activation = "relu";
  std::string mlp = "DenseReluDense";  // name of the MLP within its sublayer
  // Every how many layers there are experts; 0: nowhere.
  int64_t encoder_step = 0, decoder_step = 0;
  ExpertsConfig experts;  // names of weights within the MLP
  RouterLosses losses;
};

void readProjection(Config& config, T5Config& c) {
  c.scaled = config.flag("scale_decoder_outputs", c.tied);
  const std::string projection = config.text("feed_forward_proj", "relu");
  config.expectOneOf("feed_forward_proj", projection,
                     {"relu", "gated-gelu", "gated-silu"});
  c.gated = projection != "relu";
  c.activation = projection == "gated-gelu"   ? "gelu_new"
                 : projection == "gated-silu" ? "silu"
                                              : "relu";
}

void readSwitch(Config& config, T5Config& c, bool training) {
  c.mlp = "mlp";
  c.activation = config.text("dense_act_fn", "relu");
  config.expectOneOf("dense_act_fn", c.activation, expertActivationNames());
  const double width = static_cast<double>(c.width),
               inner = static_cast<double>(c.inner);
  ExpertsConfig& experts = c.experts;
  experts.count = config.experts("num_experts", 8);
  experts.inner = c.inner;
  experts.activation = c.activation;
  experts.routing.capacity = config.size("expert_capacity", 64);
  experts.up = Init::normal(1.0 / std::sqrt(width));
  experts.down = Init::normal(1.0 / std::sqrt(inner));
  experts.router = "router.classifier.weight";
  experts.up_name = "experts.expert_*.wi.weight";
  experts.down_name = "experts.expert_*.wo.weight";
  // transformers takes a step of all layers for 0 sparse ones.
  const auto step = [&](const char* key, int64_t layers) {
    const int64_t sparse = config.count(key, 3);
    return sparse > 0 ? layers / sparse : layers;
  };
  c.encoder_step = step("num_sparse_encoder_layers", c.layers);
  c.decoder_step = step("num_sparse_decoder_layers", c.decoder_layers);
  if (config.flag("router_bias", false))
    config.complain("'router_bias': expected false, found true");
  config.expectOneOf("router_dtype", config.text("router_dtype", "float32"),
                     {"float32"});
  c.losses = RouterLosses::read(config, training, /*has_log_sums=*/true);
  refuseRouterNoise(config, training);
  if (training && c.dropout > 0.0)
    config.complain(
        "'dropout_rate': expected 0 for training (--dropout 0 sets it), "
        "found " +
        nlohmann::json(c.dropout).dump() +
        "; dropout within experts is not supported");
}

bool isSparse(int64_t layer, int64_t step) {
  return step == 1 || (step > 1 && layer % step == 1);
}

// The bucket of a key `distance` after a query. Near distances have one bucket
// each; far distances share buckets, spaced logarithmically. Computed in f32 to
// match the trained models.
int64_t bucketOf(int64_t distance, bool both_directions, const T5Config& c) {
  int64_t buckets = c.buckets, first = 0;
  if (both_directions) {
    buckets /= 2;
    if (distance > 0) first = buckets;
    distance = std::abs(distance);
  } else {
    distance = std::max<int64_t>(-distance, 0);
  }
  const int64_t exact = buckets / 2;
  if (distance < exact) return first + distance;
  const float ratio =
      std::log(static_cast<float>(distance) / static_cast<float>(exact)) /
      static_cast<float>(std::log(static_cast<double>(c.distance) /
                                  static_cast<double>(exact)));
  const int64_t far =
      exact + static_cast<int64_t>(ratio * static_cast<float>(buckets - exact));
  return first + std::min(far, buckets - 1);
}

// [1, heads, length, length]: a learned number per head and bucket of (key
// position - query position).
Value relativeBias(ModelBuilder& m, const std::string& prefix, int64_t length,
                   bool both_directions, const T5Config& c) {
  const Init init = Init::normal(1.0 / std::sqrt(static_cast<double>(c.width)));
  const Value table = m.weight(prefix + "relative_attention_bias.weight",
                               {c.buckets, c.heads}, init);
  std::vector<int64_t> buckets;
  for (int64_t distance = 1 - length; distance < length; ++distance)
    buckets.push_back(bucketOf(distance, both_directions, c));
  const int64_t distances = static_cast<int64_t>(buckets.size());
  const Value by_distance = m.rows(table, m.integers({distances}, buckets));
  const Shape square = {length, length};
  const Value distance = m.subIntegers(m.iota(square, 1), m.iota(square, 0));
  const Value index =
      m.addIntegers(distance, m.integerSplat(square, length - 1));
  return m.reshape(m.transpose(m.rows(by_distance, index), {2, 0, 1}),
                   {1, c.heads, length, length});
}

// The heads of `from` times the weight `name`, which ends in q, k or v.
Value heads(Builder& b, Value from, const std::string& name,
            const T5Config& c) {
  const double width = static_cast<double>(c.width),
               head = static_cast<double>(c.head);
  const bool is_query = name.back() == 'q';
  const Init init =
      Init::normal(1.0 / std::sqrt(is_query ? width * head : width));
  return b.splitHeads(
      b.linear(from, name, c.heads * c.head, /*bias=*/false, init), c.heads);
}

// x + attention(norm(x), source or norm(x)). If `cache` has keys, new ones are
// added to it; with `frozen`, its keys are those of the source.
Value attend(Builder& b, Value x, Value source, Value bias, bool causal,
             const std::string& layer, const char* kind, const T5Config& c,
             LayerCache* cache = nullptr, bool frozen = false) {
  const int64_t inner = c.heads * c.head;
  const Init back = Init::normal(1.0 / std::sqrt(static_cast<double>(inner)));
  const Value normed = b.rmsNorm(x, layer + ".layer_norm", c.epsilon);
  const std::string name = layer + "." + kind + ".";
  const Value q = heads(b, normed, name + "q", c);
  Value seen;
  if (frozen) {
    seen =
        attendSeen(b, q, readHeads(b, cache->keys), readHeads(b, cache->values),
                   bias, /*scale=*/1.0, cache->seen);
  } else {
    const Value k = heads(b, source ? source : normed, name + "k", c),
                v = heads(b, source ? source : normed, name + "v", c);
    seen = cache ? attendWithCache(b, q, k, v, bias, /*scale=*/1.0, c.dropout,
                                   std::nullopt, *cache)
                 : b.attention(q, k, v, bias, /*scale=*/1.0, causal, c.dropout);
  }
  seen = b.mergeHeads(seen);
  return b.add(x, b.dropout(b.linear(seen, layer + "." + kind + ".o", c.width,
                                     /*bias=*/false, back),
                            c.dropout));
}

// x + experts(norm(x)), and the statistics of the router if losses need them.
ValueList feedExperts(Builder& b, Value x, const std::string& layer,
                      const T5Config& c) {
  const Value normed = b.rmsNorm(x, layer + ".layer_norm", c.epsilon);
  ExpertsConfig experts = c.experts;
  for (std::string* name :
       {&experts.router, &experts.up_name, &experts.down_name})
    *name = layer + "." + c.mlp + "." + *name;
  ValueList results(1);
  results[0] = b.add(x, sparseMlp(b, normed, experts,
                                  c.losses.areUsed() ? &results : nullptr));
  return results;
}

// x + mlp(norm(x)) first.
ValueList feedForward(Builder& b, Value x, const std::string& layer,
                      const T5Config& c, bool is_sparse) {
  if (is_sparse) return feedExperts(b, x, layer, c);
  const Init up = Init::normal(1.0 / std::sqrt(static_cast<double>(c.width)));
  const Init down = Init::normal(1.0 / std::sqrt(static_cast<double>(c.inner)));
  const Value normed = b.rmsNorm(x, layer + ".layer_norm", c.epsilon);
  const auto linear = [&](const char* name) {
    return b.linear(normed, layer + "." + c.mlp + "." + name, c.inner,
                    /*bias=*/false, up);
  };
  Value inner = b.activation(linear(c.gated ? "wi_0" : "wi"), c.activation);
  if (c.gated) inner = b.mul(inner, linear("wi_1"));
  inner = b.dropout(inner, c.dropout);
  return {b.add(x, b.dropout(b.linear(inner, layer + "." + c.mlp + ".wo",
                                      c.width, /*bias=*/false, down),
                             c.dropout))};
}

// The losses of the routers of a stack, as transformers' Switch Transformers
// have them: rows of all layers of a sequence are one group. A stack with
// experts in every layer has none.
Value routerLoss(ModelBuilder& m, const RouterSums& sums, int64_t length,
                 int64_t step, const T5Config& c) {
  if (sums.isEmpty() || step <= 1) return {};
  builder::Emitter e(m.ops());
  e.start(m.loc());
  const builder::Val scores = {sums.scores()};
  const double rows = static_cast<double>(length * sums.layers());
  const builder::Val balance = builder::balanceLoss(
      e, {sums.choices()}, scores, e.splat(rows, scores.elementType()));
  return e
      .add(e.mul(balance, c.losses.balance),
           e.mul(
               {sums.logSums()},
               c.losses.log_sums / (rows * static_cast<double>(scores.dim(0)))))
      .value;
}

Value encode(ModelBuilder& m, Value x, Value mask, const T5Config& c,
             RouterSums& sums) {
  Value bias = relativeBias(m, "encoder.block.0.layer.0.SelfAttention.",
                            m.shapeOf(x)[1], /*both_directions=*/true, c);
  if (mask) {
    const llvm::ArrayRef<int64_t> shape = m.shapeOf(x);
    const Shape full = {shape[0], c.heads, shape[1], shape[1]};
    bias = m.add(m.broadcast(bias, full, {0, 1, 2, 3}),
                 m.broadcast(mask, full, {0, 1, 2, 3}));
  }
  for (int64_t i = 0; i < c.layers; ++i) {
    const bool is_sparse = isSparse(i, c.encoder_step);
    ValueList results = m.layer(
        is_sparse ? "sparse_encoder_block" : "encoder_block",
        "encoder.block." + std::to_string(i) + ".", {x, bias},
        [&](Builder& b, ValueRange in) {
          const Value seen = attend(b, in[0], Value(), in[1], /*causal=*/false,
                                    "layer.0", "SelfAttention", c);
          return feedForward(b, seen, "layer.1", c, is_sparse);
        });
    x = results[0];
    sums.add(m, results);
  }
  return m.dropout(m.rmsNorm(x, "encoder.final_layer_norm", c.epsilon),
                   c.dropout);
}

Value decode(ModelBuilder& m, Value x, Value encoded, Value mask,
             const T5Config& c, RouterSums& sums) {
  const Value bias =
      relativeBias(m, "decoder.block.0.layer.0.SelfAttention.", m.shapeOf(x)[1],
                   /*both_directions=*/false, c);
  for (int64_t i = 0; i < c.decoder_layers; ++i) {
    ValueList inputs = {x, bias, encoded};
    if (mask) inputs.push_back(mask);
    const bool is_sparse = isSparse(i, c.decoder_step);
    const ValueList results =
        m.layer(is_sparse ? "sparse_decoder_block" : "decoder_block",
                "decoder.block." + std::to_string(i) + ".", inputs,
                [&](Builder& b, ValueRange in) {
                  Value y = attend(b, in[0], Value(), in[1], /*causal=*/true,
                                   "layer.0", "SelfAttention", c);
                  y = attend(b, y, in[2], in.size() > 3 ? in[3] : Value(),
                             /*causal=*/false, "layer.1", "EncDecAttention", c);
                  return feedForward(b, y, "layer.2", c, is_sparse);
                });
    x = results[0];
    sums.add(m, results);
  }
  return m.dropout(m.rmsNorm(x, "decoder.final_layer_norm", c.epsilon),
                   c.dropout);
}

// The decoder's bias of one query per row, at `positions`, and the keys of the
// cache: [rows, heads, 1, length].
Value biasAt(ModelBuilder& m, Value positions, int64_t length,
             const T5Config& c) {
  const Value table = m.weight(
      "decoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight",
      {c.buckets, c.heads}, Init::normal());
  std::vector<int64_t> buckets;
  for (int64_t distance = 1 - length; distance <= 0; ++distance)
    buckets.push_back(bucketOf(distance, /*both_directions=*/false, c));
  const Value by_distance = m.rows(table, m.integers({length}, buckets));
  const Shape shape = {m.shapeOf(positions)[0], length};
  // Keys after the query are hidden, whatever the bias.
  const Value index = m.addIntegers(
      m.subIntegers(m.iota(shape, 1), m.broadcast(positions, shape, {0})),
      m.integerSplat(shape, length - 1));
  return m.reshape(m.transpose(m.rows(by_distance, index), {0, 2, 1}),
                   {shape[0], c.heads, 1, length});
}

std::string decoderLayer(int64_t layer) {
  return "decoder.block." + std::to_string(layer) + ".";
}

// Encodes prompts, and writes the keys and values that the decoder takes from
// them.
OwningModule buildPrompts(ModelBuilder& m, ModelCache& cache, int64_t batch,
                          int64_t length, Value ids, Value tokens,
                          const T5Config& c) {
  cache.prepare(length, std::nullopt);
  const Value seen = mlir::arith::ExtUIOp::create(
      m.ops(), m.loc(),
      mlir::RankedTensorType::get({batch, length}, m.ops().getI64Type()),
      cache.below(cache.lengths(), length));
  RouterSums sums;  // not used: only training has losses of routers
  const Value encoded =
      encode(m, m.rows(tokens, ids), m.maskBias(seen), c, sums);
  for (int64_t i = 0; i < c.decoder_layers; ++i) {
    ValueList inputs = {encoded};
    cache.append(decoderLayer(i) + "source_", c.heads, c.head, c.head, inputs);
    ValueList results = m.layer(
        "source_keys", decoderLayer(i), inputs, [&](Builder& b, ValueRange in) {
          LayerCache kept = cache.at(in);
          const std::string name = "layer.1.EncDecAttention.";
          kept.keys = writeHeads(b, kept.keys, kept.places,
                                 heads(b, in[0], name + "k", c));
          kept.values = writeHeads(b, kept.values, kept.places,
                                   heads(b, in[0], name + "v", c));
          return kept.states();
        });
    cache.update(results);
  }
  return m.finish({{cache.lastTokens(encoded), "y"}});
}

// The decoder's step for one token of each row.
Value decodeTokens(ModelBuilder& m, ModelCache& cache, Value x, Value seen,
                   int64_t length, const T5Config& c) {
  cache.prepare(1, std::nullopt);
  const Value bias = biasAt(m, cache.positions(), length, c);
  for (int64_t i = 0; i < c.decoder_layers; ++i) {
    ValueList inputs = {x, bias};
    inputs.append(
        cache.declare(decoderLayer(i) + "source_", c.heads, c.head, c.head));
    inputs.push_back(seen);
    cache.append(decoderLayer(i), c.heads, c.head, c.head, inputs);
    const bool is_sparse = isSparse(i, c.decoder_step);
    ValueList results = m.layer(
        is_sparse ? "sparse_decoder_block" : "decoder_block", decoderLayer(i),
        inputs, [&](Builder& b, ValueRange in) {
          LayerCache own = cache.at(in),
                     source = cache.frozen(in.slice(2, cache.count()),
                                           in[2 + cache.count()]);
          Value y = attend(b, in[0], Value(), in[1], /*causal=*/true, "layer.0",
                           "SelfAttention", c, &own);
          y = attend(b, y, Value(), Value(), /*causal=*/false, "layer.1",
                     "EncDecAttention", c, &source, /*frozen=*/true);
          ValueList values = feedForward(b, y, "layer.2", c, is_sparse);
          values.append(own.states());
          return values;
        });
    cache.update(results);
    x = results[0];
  }
  return m.rmsNorm(x, "decoder.final_layer_norm", c.epsilon);
}

// The logits of the decoder's output.
Value logitsOf(ModelBuilder& m, Value x, Value tokens, const T5Config& c) {
  if (c.scaled) x = m.scale(x, 1.0 / std::sqrt(static_cast<double>(c.width)));
  const Value head = c.tied
                         ? tokens
                         : m.weight("lm_head.weight", {c.vocabulary, c.width},
                                    Init::normal(1.0));
  return m.project(x, head, Value());
}

// With a cache, the encoder reads prompts, and the decoder adds tokens. Each
// has weights that the other lacks.
OwningModule buildWithCache(ModelSource& source, const T5Config& c) {
  const std::optional<CacheOptions>& options = source.options.cache;
  const bool encodes = options->step == CacheOptions::Step::kPrompts;
  source.weights.ignore(
      encodes ? llvm::ArrayRef<llvm::StringRef>{"decoder.*", "lm_head.weight"}
              : llvm::ArrayRef<llvm::StringRef>{
                    "encoder.*", "decoder.block.*.EncDecAttention.k.weight",
                    "decoder.block.*.EncDecAttention.v.weight"});
  ModelBuilder m(source.context, source.config, source.weights, source.options,
                 {"batch", "seq"}, {});
  const TokenSizes sizes = tokenSizes(m, options, options->length);
  m.expectAtMost("seq", options->length, int64_t{1} << 19, "8 MB of buckets");
  if (failed(m.check())) return nullptr;
  const Value ids = m.input("input_ids", {sizes.batch, sizes.length},
                            /*integer=*/true);
  ModelCache cache(m, options, sizes.batch);
  Value lengths;
  if (!encodes)
    lengths = m.input("source_lengths", {sizes.batch}, /*integer=*/true);
  const Value tokens =
      m.weight("shared.weight", {c.vocabulary, c.width}, Init::normal(1.0));
  if (encodes)
    return buildPrompts(m, cache, sizes.batch, sizes.length, ids, tokens, c);
  const Value seen = cache.below(lengths, options->length);
  const Value x =
      decodeTokens(m, cache, m.rows(tokens, ids), seen, options->length, c);
  return m.finish({{logitsOf(m, x, tokens, c), "y"}});
}

}  // namespace

static OwningModule buildModel(ModelSource& source, const T5Config& c) {
  source.weights.ignore({"encoder.embed_tokens.weight",
                         "decoder.embed_tokens.weight",
                         "decoder.block.0.layer.1.EncDecAttention.relative_"
                         "attention_bias.weight"});
  if (c.tied) source.weights.ignore({"lm_head.weight"});
  if (source.options.cache) return buildWithCache(source, c);
  ModelBuilder m(source.context, source.config, source.weights, source.options,
                 {"batch", "seq", "decoder_seq"}, {"attention_mask"});
  const int64_t batch = m.dim("batch", 1), length = m.dim("seq", 128),
                decoder_length = m.dim("decoder_seq", length);
  // The buckets of all distances are a constant in the module.
  m.expectAtMost("seq", length, int64_t{1} << 19, "8 MB of buckets");
  m.expectAtMost("decoder_seq", decoder_length, int64_t{1} << 19,
                 "8 MB of buckets");
  if (failed(m.check())) return nullptr;

  const Value ids = m.input("input_ids", {batch, length}, /*integer=*/true);
  Value mask;
  if (m.takes("attention_mask", false))
    mask = m.input("attention_mask", {batch, length}, /*integer=*/true);
  const Value decoder_ids =
      m.input("decoder_input_ids", {batch, decoder_length}, /*integer=*/true);
  m.seedInput({c.dropout});

  const Value tokens =
      m.weight("shared.weight", {c.vocabulary, c.width}, Init::normal(1.0));
  if (mask) mask = m.maskBias(mask);
  const auto embedded = [&](Value which) {
    return m.dropout(m.rows(tokens, which), c.dropout);
  };
  RouterSums encoder_sums, decoder_sums;
  const Value encoded = encode(m, embedded(ids), mask, c, encoder_sums);
  const Value x =
      decode(m, embedded(decoder_ids), encoded, mask, c, decoder_sums);
  const Value y = logitsOf(m, x, tokens, c);
  const Value of_encoder =
                  routerLoss(m, encoder_sums, length, c.encoder_step, c),
              of_decoder = routerLoss(m, decoder_sums, decoder_length,
                                      c.decoder_step, c);
  if (!of_encoder && !of_decoder) return m.finish({{y, "y"}});
  const Value loss = of_encoder && of_decoder ? m.add(of_encoder, of_decoder)
                     : of_encoder             ? of_encoder
                                              : of_decoder;
  return m.finish({{y, "y"}, {loss, nn::kAuxiliaryLossResult}});
}

OwningModule buildT5(ModelSource& source) {
  T5Config c(source.config, source.options.dropout, std::nullopt);
  readProjection(source.config, c);
  // transformers 5 marks every T5 as tied, and marks untied models as unscaled.
  // In that case the model's own head counts.
  if (c.tied && !c.scaled && source.weights.has("lm_head.weight"))
    c.tied = false;
  return buildModel(source, c);
}

OwningModule buildSwitchTransformers(ModelSource& source) {
  T5Config c(source.config, source.options.dropout, /*default_layers=*/12);
  readSwitch(source.config, c, source.options.training);
  return buildModel(source, c);
}

}  // namespace partita::huggingface
