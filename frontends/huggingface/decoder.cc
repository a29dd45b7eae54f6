// Embedding, layers, norm and head; attention with grouped heads; gated MLPs.
#include "frontends/huggingface/decoder.h"

#include <algorithm>
#include <cmath>

#include "dialects/nn/result_names.h"

namespace partita::huggingface {

DecoderConfig::DecoderConfig(Config& config,
                             std::optional<double> forced_dropout,
                             const DecoderDefaults& defaults)
    : defaults(defaults),
      vocabulary(config.size("vocab_size")),
      width(config.size("hidden_size")),
      inner(config.size("intermediate_size")),
      layers(config.layers("num_hidden_layers")),
      heads(config.size("num_attention_heads")),
      positions(config.size("max_position_embeddings", defaults.positions)),
      epsilon(config.number("rms_norm_eps", defaults.epsilon)),
      attention_dropout(config.dropout("attention_dropout", forced_dropout)),
      activation(config.text("hidden_act", "silu")),
      tied(config.flag("tie_word_embeddings", false)) {
  config.expectOneOf("hidden_act", activation, Builder::activationNames());
}

HeadsConfig::HeadsConfig(Config& config, DecoderConfig& decoder)
    : groups(
          config.size("num_key_value_heads",
                      config.isNull("num_key_value_heads")
                          ? decoder.heads
                          : decoder.defaults.groups.value_or(decoder.heads))),
      head(config.size("head_dim",
                       decoder.defaults.head.value_or(std::max<int64_t>(
                           1, decoder.width / decoder.heads)))),
      bias(config.flag("attention_bias", false)) {
  config.expectDivides("num_key_value_heads", groups, "num_attention_heads",
                       decoder.heads);
  decoder.rotary = readRotary(config, "head_dim", head, decoder.defaults.theta,
                              decoder.positions);
}

void HeadsConfig::readWindow(Config& config, const DecoderDefaults& defaults) {
  if (config.has("sliding_window"))
    window = config.size("sliding_window");
  else if (!config.isNull("sliding_window"))
    window = defaults.window;
}

Init residualInit(const DecoderConfig& c) {
  return Init::normal(0.02 / std::sqrt(2.0 * static_cast<double>(c.layers)));
}

Value attend(Builder& b, LayerInputs& in, const DecoderConfig& c,
             const HeadsConfig& heads) {
  const Value normed = b.rmsNorm(in.x, "input_layernorm", c.epsilon);
  const auto project = [&](const char* name, int64_t count) {
    return b.splitHeads(b.linear(normed, std::string("self_attn.") + name,
                                 count * heads.head, heads.bias),
                        count);
  };
  const auto place = [&](Value x, const char* norm) {
    if (heads.has_norms)
      x = b.rmsNorm(x, std::string("self_attn.") + norm, c.epsilon);
    return rotate(b, x, in.cosine, in.sine);
  };
  const Value q = place(project("q_proj", c.heads), "q_norm");
  const Value k = place(project("k_proj", heads.groups), "k_norm");
  const Value v = project("v_proj", heads.groups);
  const double scale = 1.0 / std::sqrt(static_cast<double>(heads.head));
  const Value seen = b.mergeHeads(attendWithCache(
      b, q, k, v, in.mask, scale, c.attention_dropout, heads.window, in.cache));
  return b.add(in.x, b.linear(seen, "self_attn.o_proj", c.width, heads.bias,
                              residualInit(c)));
}

Value gatedMlp(Builder& b, Value x, const std::string& name, int64_t inner,
               const DecoderConfig& c, bool bias) {
  const Value gate =
      b.activation(b.linear(x, name + ".gate_proj", inner, bias), c.activation);
  const Value up = b.linear(x, name + ".up_proj", inner, bias);
  return b.linear(b.mul(gate, up), name + ".down_proj", c.width, bias,
                  residualInit(c));
}

ExpertsConfig readExperts(Config& config, const DecoderConfig& c,
                          const char* count_key, const char* inner_key) {
  ExpertsConfig experts;
  experts.count = config.experts(count_key);
  experts.inner = config.size(inner_key);
  experts.activation = c.activation;
  experts.down = residualInit(c);
  config.expectOneOf("hidden_act", c.activation, expertActivationNames());
  return experts;
}

// The loss of all sparse layers together, as transformers' Mixtral has it: rows
// of all layers and sequences are one group.
static Value routerLoss(ModelBuilder& m, const RouterSums& sums, Value ids,
                        Value kept, double factor) {
  builder::Emitter e(m.ops());
  e.start(m.loc());
  builder::Val rows;
  if (kept)
    rows = e.mul(
        e.cast(e.reduce(nn::ReduceKind::sum, {kept}, {0, 1}, false), e.f32()),
        static_cast<double>(sums.layers()));
  else
    rows = e.splat(static_cast<double>(sums.layers() * m.shapeOf(ids)[0] *
                                       m.shapeOf(ids)[1]),
                   e.f32());
  const auto total = [&](Value value) {
    return e.reduce(nn::ReduceKind::sum, {value}, {0}, /*keep_dims=*/true);
  };
  return e
      .mul(builder::balanceLoss(e, total(sums.choices()), total(sums.scores()),
                                rows),
           factor)
      .value;
}

OwningModule buildDecoder(ModelSource& source, const DecoderConfig& c,
                          const CacheSizes& sizes,
                          const std::function<LayerKind(int64_t)>& kindOf,
                          const RouterLosses& losses) {
  source.weights.setBasePrefix("model.");
  source.weights.ignore({"model.layers.*.self_attn.rotary_emb.inv_freq"});
  if (c.tied) source.weights.ignore({"lm_head.weight"});
  ModelBuilder m(source.context, source.config, source.weights, source.options,
                 {"batch", "seq"}, {"attention_mask"});
  const std::optional<CacheOptions>& options = source.options.cache;
  const TokenSizes tokens_of = tokenSizes(m, options, c.positions);
  const int64_t batch = tokens_of.batch, length = tokens_of.length,
                most = tokens_of.positions;
  m.expectAtMost("seq", most, c.positions, "max_position_embeddings");
  // The tables of angles are constants in the module.
  m.expectAtMost("seq", most, (int64_t{1} << 28) / c.rotary.size,
                 "1 GB of angles");
  if (failed(m.check())) return nullptr;

  const Value ids = m.input("input_ids", {batch, length}, /*integer=*/true);
  Value mask;
  if (m.takes("attention_mask", false))
    mask = m.input("attention_mask", {batch, length}, /*integer=*/true);
  ModelCache cache(m, options, batch);
  m.seedInput({c.attention_dropout});

  const Value tokens = m.weight("model.embed_tokens.weight",
                                {c.vocabulary, c.width}, Init::normal());
  Value x = m.rows(tokens, ids);
  cache.prepare(length, sizes.window);
  ValueList shared = {
      cache.atPositions(angles(m, most, c.rotary, std::cos), length),
      cache.atPositions(angles(m, most, c.rotary, std::sin), length)};
  if (mask) shared.push_back(m.maskBias(mask));
  if (mask && losses.areUsed()) shared.push_back(mask);
  RouterSums sums;
  for (int64_t i = 0; i < c.layers; ++i) {
    const std::string prefix = "model.layers." + std::to_string(i) + ".";
    ValueList inputs = {x};
    inputs.append(shared);
    cache.append(prefix, sizes.heads, sizes.key, sizes.value, inputs);
    const LayerKind kind = kindOf(i);
    ValueList results =
        m.layer(kind.name, prefix, inputs, [&](Builder& b, ValueRange in) {
          LayerInputs given = {in[0], in[1], in[2]};
          if (mask) given.mask = in[3];
          if (mask && losses.areUsed()) given.kept = in[4];
          given.cache = cache.at(in);
          ValueList values = kind.body(b, given);
          values.append(given.cache.states());
          return values;
        });
    cache.update(results);
    x = results[0];
    sums.add(m, results);
  }
  x = m.rmsNorm(cache.lastTokens(x), "model.norm", c.epsilon);
  const Value head = c.tied ? tokens
                            : m.weight("lm_head.weight",
                                       {c.vocabulary, c.width}, Init::normal());
  const Value y = m.project(x, head, Value());
  if (sums.isEmpty()) return m.finish({{y, "y"}});
  return m.finish({{y, "y"},
                   {routerLoss(m, sums, ids, mask, losses.balance),
                    nn::kAuxiliaryLossResult}});
}

}  // namespace partita::huggingface
