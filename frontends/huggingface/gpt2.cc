// GPT-2: a decoder with learned positions, pre-norm blocks and a tied head
// (Radford et al., 2019).
#include <cmath>

#include "frontends/huggingface/builder.h"
#include "frontends/huggingface/cache.h"
#include "frontends/huggingface/models.h"

namespace partita::huggingface {
namespace {

struct Gpt2Config {
  Gpt2Config(Config& config, std::optional<double> dropout)
      : vocabulary(config.size("vocab_size")),
        positions(config.size("n_positions")),
        width(config.size("n_embd")),
        layers(config.layers("n_layer")),
        heads(config.size("n_head")),
        inner(config.size("n_inner", 4 * width)),
        activation(config.text("activation_function", "gelu_new")),
        epsilon(config.number("layer_norm_epsilon", 1e-5)),
        scale_weights(config.flag("scale_attn_weights", true)),
        scale_by_layer(config.flag("scale_attn_by_inverse_layer_idx", false)),
        embedding_dropout(config.dropout("embd_pdrop", dropout)),
        attention_dropout(config.dropout("attn_pdrop", dropout)),
        residual_dropout(config.dropout("resid_pdrop", dropout)),
        tied(config.flag("tie_word_embeddings", true)) {
    config.expectOneOf("activation_function", activation,
                       Builder::activationNames());
    config.expectDivides("n_head", heads, "n_embd", width);
    const std::vector<std::string> architectures =
        config.texts("architectures");
    headless = architectures.size() == 1 && architectures[0] == "GPT2Model";
  }

  int64_t vocabulary, positions, width, layers, heads, inner;
  std::string activation;
  double epsilon;
  bool scale_weights, scale_by_layer;
  double embedding_dropout, attention_dropout, residual_dropout;
  bool tied, headless;
};

Value block(Builder& b, Value x, Value mask, LayerCache& cache,
            const Gpt2Config& c, double scale) {
  // Projections into the residual stream have a smaller initial scale, divided
  // by the square root of the number of additions to the stream.
  const Init residual =
      Init::normal(0.02 / std::sqrt(2.0 * static_cast<double>(c.layers)));
  const Value qkv =
      b.conv1d(b.layerNorm(x, "ln_1", c.epsilon), "attn.c_attn", 3 * c.width);
  const auto part = [&](int64_t i) {
    return b.splitHeads(b.slice(qkv, 2, i * c.width, c.width), c.heads);
  };
  const Value seen = attendWithCache(b, part(0), part(1), part(2), mask, scale,
                                     c.attention_dropout, std::nullopt, cache);
  x = b.add(x, b.dropout(b.conv1d(b.mergeHeads(seen), "attn.c_proj", c.width,
                                  residual),
                         c.residual_dropout));
  const Value up =
      b.conv1d(b.layerNorm(x, "ln_2", c.epsilon), "mlp.c_fc", c.inner);
  return b.add(x, b.dropout(b.conv1d(b.activation(up, c.activation),
                                     "mlp.c_proj", c.width, residual),
                            c.residual_dropout));
}

}  // namespace

OwningModule buildGpt2(ModelSource& source) {
  const Gpt2Config c(source.config, source.options.dropout);
  source.weights.setBasePrefix("transformer.");
  source.weights.ignore(
      {"transformer.h.*.attn.bias", "transformer.h.*.attn.masked_bias"});
  if (c.tied) source.weights.ignore({"lm_head.weight"});
  ModelBuilder m(source.context, source.config, source.weights, source.options,
                 {"batch", "seq"}, {"attention_mask"});
  const TokenSizes sizes = tokenSizes(m, source.options.cache, c.positions);
  const int64_t batch = sizes.batch, length = sizes.length;
  m.expectAtMost("seq", sizes.positions, c.positions, "n_positions");
  if (failed(m.check())) return nullptr;

  const Value ids = m.input("input_ids", {batch, length}, /*integer=*/true);
  Value mask;
  if (m.takes("attention_mask", false))
    mask = m.input("attention_mask", {batch, length}, /*integer=*/true);
  ModelCache cache(m, source.options.cache, batch);
  m.seedInput({c.embedding_dropout, c.attention_dropout, c.residual_dropout});

  const Value tokens = m.weight("transformer.wte.weight",
                                {c.vocabulary, c.width}, Init::normal());
  const Value positions = m.weight("transformer.wpe.weight",
                                   {c.positions, c.width}, Init::normal(0.01));
  cache.prepare(length, std::nullopt);
  Value position = cache.atPositions(positions, length);
  Value x = m.rows(tokens, ids);
  if (!cache.takesTokens())
    position = m.broadcast(position, m.shapeOf(x), {1, 2});
  x = m.dropout(m.add(x, position), c.embedding_dropout);
  ValueList shared;
  if (mask) shared.push_back(m.maskBias(mask));
  for (int64_t i = 0; i < c.layers; ++i) {
    double scale = c.scale_weights
                       ? 1.0 / std::sqrt(static_cast<double>(c.width / c.heads))
                       : 1.0;
    if (c.scale_by_layer) scale /= static_cast<double>(i + 1);
    ValueList inputs = {x};
    inputs.append(shared);
    const std::string prefix = "transformer.h." + std::to_string(i) + ".";
    const int64_t head = c.width / c.heads;
    cache.append(prefix, c.heads, head, head, inputs);
    ValueList results = m.layer(
        "block", prefix, inputs,
        [&](Builder& b, ValueRange in) {
          LayerCache kept = cache.at(in);
          ValueList values = {
              block(b, in[0], mask ? in[1] : Value(), kept, c, scale)};
          values.append(kept.states());
          return values;
        },
        c.scale_by_layer ? std::to_string(i) : "");
    cache.update(results);
    x = results[0];
  }
  x = m.layerNorm(cache.lastTokens(x), "transformer.ln_f", c.epsilon);
  if (c.headless) return m.finish({{x, "y"}});
  const Value head = c.tied ? tokens
                            : m.weight("lm_head.weight",
                                       {c.vocabulary, c.width}, Init::normal());
  return m.finish({{m.project(x, head, Value()), "y"}});
}

}  // namespace partita::huggingface
