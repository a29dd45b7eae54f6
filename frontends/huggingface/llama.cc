// Llama: a decoder with rotary positions, grouped key-value heads, RMS norms
// and a gated MLP (Touvron et al., 2023). Mistral adds a sliding window (Jiang
// et al., 2023).
#include <cmath>

#include "frontends/huggingface/builder.h"
#include "frontends/huggingface/models.h"

namespace partita::huggingface {
namespace {

constexpr int64_t kMaxHead = 8192;

struct LlamaConfig {
  LlamaConfig(Config& config, std::optional<double> forced)
      : vocabulary(config.size("vocab_size")),
        width(config.size("hidden_size")),
        inner(config.size("intermediate_size")),
        layers(config.layers("num_hidden_layers")),
        heads(config.size("num_attention_heads")),
        groups(config.size("num_key_value_heads", heads)),
        head(config.size("head_dim", std::max<int64_t>(1, width / heads))),
        positions(config.size("max_position_embeddings", 2048)),
        epsilon(config.number("rms_norm_eps", 1e-6)),
        attention_dropout(config.dropout("attention_dropout", forced)),
        activation(config.text("hidden_act", "silu")),
        tied(config.flag("tie_word_embeddings", false)),
        attention_bias(config.flag("attention_bias", false)),
        mlp_bias(config.flag("mlp_bias", false)) {
    if (config.has("sliding_window")) window = config.size("sliding_window");
    config.expectOneOf("hidden_act", activation, Builder::activationNames());
    config.expectDivides("num_key_value_heads", groups, "num_attention_heads",
                         heads);
    if (head % 2 != 0 || head > kMaxHead)
      config.complain("'head_dim': expected an even number of at most " +
                      std::to_string(kMaxHead) + ", found " +
                      std::to_string(head));
    else
      readFrequencies(config);
  }

  int64_t vocabulary, width, inner, layers, heads, groups, head, positions;
  double epsilon, attention_dropout;
  std::string activation;
  bool tied, attention_bias, mlp_bias;
  std::optional<int64_t> window;   // keys that a query sees at most
  std::vector<float> frequencies;  // one per pair of a head's elements

 private:
  void readFrequencies(Config& config);
};

// For longer contexts the slow frequencies are stretched: all of them (linear),
// or those with long waves (llama3).
void LlamaConfig::readFrequencies(Config& config) {
  static const nlohmann::json kNone = nlohmann::json::object();
  const nlohmann::json& values = config.values();
  // Newer configs have theta in the same section as the scaling.
  const char* section =
      config.has("rope_parameters") ? "rope_parameters" : "rope_scaling";
  const bool scaled = config.has(section) && values[section].is_object();
  Config rope(scaled ? values[section] : kNone, config.loc(),
              std::string(section) + ".");
  const double theta =
      rope.number("rope_theta", config.number("rope_theta", 10000.0));
  const std::string type = rope.text("rope_type", rope.text("type", "default"));
  rope.expectOneOf("rope_type", type, {"default", "linear", "llama3"});
  const double factor = rope.number("factor", 1.0);
  const double low = rope.number("low_freq_factor", 1.0),
               high = rope.number("high_freq_factor", 4.0);
  const double original =
      rope.number("original_max_position_embeddings", 8192.0);
  if (theta <= 0.0) rope.complain("'rope_theta': expected a positive number");
  if (factor <= 0.0)
    rope.complain("'rope_scaling.factor': expected a positive number");
  if (type == "llama3" && (low <= 0.0 || high <= low))
    rope.complain(
        "'rope_scaling': expected 0 < low_freq_factor < high_freq_factor");
  config.absorb(rope);
  for (int64_t i = 0; i < head / 2; ++i) {
    double frequency = std::pow(
        theta, -2.0 * static_cast<double>(i) / static_cast<double>(head));
    if (type == "linear") frequency /= factor;
    if (type == "llama3") {
      // 0 for waves that fit fewer than `low` times into the original context,
      // 1 for waves that fit at least `high` times, linear in between.
      const double waves = original * frequency / (2.0 * M_PI);
      const double keep = std::clamp((waves - low) / (high - low), 0.0, 1.0);
      frequency *= keep + (1.0 - keep) / factor;
    }
    frequencies.push_back(static_cast<float>(frequency));
  }
}

// The cosine or sine of position times frequency, [length, head / 2]. They are
// tables, because the vectorised f32 functions lose the angle of far positions.
Value angles(ModelBuilder& m, int64_t length, const LlamaConfig& c,
             float (*function)(float)) {
  std::vector<float> values;
  for (int64_t position = 0; position < length; ++position)
    for (const float frequency : c.frequencies)
      values.push_back(function(static_cast<float>(position) * frequency));
  return m.floats({length, c.head / 2}, values);
}

// Rotates the pairs (x[i], x[i + h/2]) of [B, N, L, h] by their position's
// angles.
Value rotate(Builder& b, Value x, Value cosine, Value sine,
             const LlamaConfig& c) {
  const int64_t half = c.head / 2;
  const Value first = b.slice(x, 3, 0, half),
              second = b.slice(x, 3, half, half);
  const Shape shape(b.shapeOf(first));
  const Value cos = b.broadcast(cosine, shape, {2, 3}),
              sin = b.broadcast(sine, shape, {2, 3});
  const Value low = b.sub(b.mul(first, cos), b.mul(second, sin));
  const Value high = b.add(b.mul(second, cos), b.mul(first, sin));
  return b.concat({low, high}, 3);
}

Value block(Builder& b, Value x, Value cosine, Value sine, Value mask,
            const LlamaConfig& c) {
  const Init residual =
      Init::normal(0.02 / std::sqrt(2.0 * static_cast<double>(c.layers)));
  const Value normed = b.rmsNorm(x, "input_layernorm", c.epsilon);
  const auto heads = [&](const char* name, int64_t count) {
    return b.splitHeads(b.linear(normed, std::string("self_attn.") + name,
                                 count * c.head, c.attention_bias),
                        count);
  };
  const Value q = rotate(b, heads("q_proj", c.heads), cosine, sine, c);
  const Value k = rotate(b, heads("k_proj", c.groups), cosine, sine, c);
  const Value v = heads("v_proj", c.groups);
  const double scale = 1.0 / std::sqrt(static_cast<double>(c.head));
  const Value seen = b.mergeHeads(b.attention(
      q, k, v, mask, scale, /*causal=*/true, c.attention_dropout, c.window));
  x = b.add(x, b.linear(seen, "self_attn.o_proj", c.width, c.attention_bias,
                        residual));
  const Value again = b.rmsNorm(x, "post_attention_layernorm", c.epsilon);
  const Value gate = b.activation(
      b.linear(again, "mlp.gate_proj", c.inner, c.mlp_bias), c.activation);
  const Value up = b.linear(again, "mlp.up_proj", c.inner, c.mlp_bias);
  return b.add(x, b.linear(b.mul(gate, up), "mlp.down_proj", c.width,
                           c.mlp_bias, residual));
}

}  // namespace

OwningModule buildLlama(ModelSource& source) {
  const LlamaConfig c(source.config, source.options.dropout);
  source.weights.setBasePrefix("model.");
  source.weights.ignore({"model.layers.*.self_attn.rotary_emb.inv_freq"});
  if (c.tied) source.weights.ignore({"lm_head.weight"});
  ModelBuilder m(source.context, source.config, source.weights, source.options,
                 {"batch", "seq"}, {"attention_mask"});
  const int64_t batch = m.dim("batch", 1),
                length = m.dim("seq", std::min<int64_t>(128, c.positions));
  m.expectAtMost("seq", length, c.positions, "max_position_embeddings");
  // The tables of angles are constants in the module.
  m.expectAtMost("seq", length, (int64_t{1} << 28) / c.head, "1 GB of angles");
  if (failed(m.check())) return nullptr;

  const Value ids = m.input("input_ids", {batch, length}, /*integer=*/true);
  Value mask;
  if (m.takes("attention_mask", false))
    mask = m.input("attention_mask", {batch, length}, /*integer=*/true);
  m.seedInput({c.attention_dropout});

  const Value tokens = m.weight("model.embed_tokens.weight",
                                {c.vocabulary, c.width}, Init::normal());
  Value x = m.rows(tokens, ids);
  ValueList shared = {angles(m, length, c, std::cos),
                      angles(m, length, c, std::sin)};
  if (mask) shared.push_back(m.maskBias(mask));
  for (int64_t i = 0; i < c.layers; ++i) {
    ValueList inputs = {x};
    inputs.append(shared);
    x = m.layer("block", "model.layers." + std::to_string(i) + ".", inputs,
                [&](Builder& b, ValueRange in) {
                  return ValueList{block(b, in[0], in[1], in[2],
                                         in.size() > 3 ? in[3] : Value(), c)};
                })[0];
  }
  x = m.rmsNorm(x, "model.norm", c.epsilon);
  const Value head = c.tied ? tokens
                            : m.weight("lm_head.weight",
                                       {c.vocabulary, c.width}, Init::normal());
  return m.finish({{m.project(x, head, Value()), "y"}});
}

}  // namespace partita::huggingface
