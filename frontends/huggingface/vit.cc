// ViT: an image as a sequence of patches, a class token, pre-norm blocks
// (Dosovitskiy et al., 2021).
#include <cmath>

#include "frontends/huggingface/builder.h"
#include "frontends/huggingface/models.h"

namespace partita::huggingface {
namespace {

struct VitConfig {
  VitConfig(Config& config, std::optional<double> forced)
      : image(config.size("image_size", 224)),
        patch(config.size("patch_size", 16)),
        channels(config.size("num_channels", 3)),
        width(config.size("hidden_size")),
        layers(config.layers("num_hidden_layers")),
        heads(config.size("num_attention_heads")),
        inner(config.size("intermediate_size")),
        activation(config.text("hidden_act", "gelu")),
        epsilon(config.number("layer_norm_eps", 1e-12)),
        dropout(config.dropout("hidden_dropout_prob", forced)),
        attention_dropout(
            config.dropout("attention_probs_dropout_prob", forced)),
        qkv_bias(config.flag("qkv_bias", true)) {
    config.expectOneOf("hidden_act", activation, Builder::activationNames());
    config.expectDivides("num_attention_heads", heads, "hidden_size", width);
    if (patch > image)
      config.complain("'patch_size': expected at most 'image_size'");
    // Follows transformers: two labels unless the config names or counts them.
    classes = config.size("num_labels", 2);
    const auto labels = config.values().find("id2label");
    if (labels != config.values().end() && labels->is_object() &&
        !labels->empty())
      classes = static_cast<int64_t>(labels->size());
  }

  int64_t image, patch, channels, width, layers, heads, inner, classes;
  std::string activation;
  double epsilon, dropout, attention_dropout;
  bool qkv_bias;
};

Value block(Builder& b, Value x, const VitConfig& c) {
  const Value normed = b.layerNorm(x, "layernorm_before", c.epsilon);
  const auto heads = [&](const char* name) {
    return b.splitHeads(
        b.linear(normed, std::string("attention.attention.") + name, c.width,
                 c.qkv_bias),
        c.heads);
  };
  const Value q = heads("query"), k = heads("key"), v = heads("value");
  const double scale = 1.0 / std::sqrt(static_cast<double>(c.width / c.heads));
  const Value seen = b.mergeHeads(b.attention(
      q, k, v, Value(), scale, /*causal=*/false, c.attention_dropout));
  const auto dense = [&](Value from, const char* name) {
    return b.dropout(b.linear(from, name, c.width), c.dropout);
  };
  x = b.add(x, dense(seen, "attention.output.dense"));
  const Value up = b.linear(b.layerNorm(x, "layernorm_after", c.epsilon),
                            "intermediate.dense", c.inner);
  return b.add(x, dense(b.activation(up, c.activation), "output.dense"));
}

// Converts [B, C, H, W] to [B, 1 + patches, width].
Value embed(ModelBuilder& m, Value pixels, const VitConfig& c) {
  const std::string base = "vit.embeddings.";
  const int64_t batch = m.shapeOf(pixels)[0];
  const Value cls =
      m.weight(base + "cls_token", {1, 1, c.width}, Init::normal());
  const int64_t side = (c.image - c.patch) / c.patch + 1, patches = side * side;
  const Value position = m.weight(base + "position_embeddings",
                                  {1, 1 + patches, c.width}, Init::normal());
  const double fan_in = static_cast<double>(c.channels * c.patch * c.patch);
  const Value kernel = m.weight(base + "patch_embeddings.projection.weight",
                                {c.width, c.channels, c.patch, c.patch},
                                Init::normal(1.0 / std::sqrt(fan_in)));
  const Value bias = m.weight(base + "patch_embeddings.projection.bias",
                              {c.width}, Init::zeros());
  Value x = m.addChannelBias(
      m.conv(pixels, kernel, c.patch, /*padding=*/0, /*groups=*/1), bias);
  x = m.transpose(m.reshape(x, {batch, c.width, patches}), {0, 2, 1});
  x = m.concat({m.broadcast(cls, {batch, 1, c.width}, {0, 1, 2}), x}, 1);
  return m.dropout(m.add(x, m.broadcast(position, m.shapeOf(x), {0, 1, 2})),
                   c.dropout);
}

}  // namespace

OwningModule buildVit(ModelSource& source) {
  const VitConfig c(source.config, source.options.dropout);
  const std::vector<std::string> architectures =
      source.config.texts("architectures");
  const bool classifies =
      source.weights.isSeeded()
          ? architectures.empty() || architectures[0] != "ViTModel"
          : source.weights.has("classifier.weight");
  source.weights.setBasePrefix("vit.");
  source.weights.ignore({"vit.pooler.*"});
  ModelBuilder m(source.context, source.config, source.weights, source.options,
                 {"batch", "image"}, {});
  const int64_t batch = m.dim("batch", 1);
  if (m.dim("image", c.image) != c.image)
    source.config.complain(
        "dimension 'image': expected the config's image_size " +
        std::to_string(c.image) +
        " (position embeddings are not interpolated), found " +
        std::to_string(m.dim("image", c.image)));
  if (failed(m.check())) return nullptr;

  const Value pixels =
      m.input("pixel_values", {batch, c.channels, c.image, c.image});
  m.seedInput({c.dropout, c.attention_dropout});
  Value x = embed(m, pixels, c);
  for (int64_t i = 0; i < c.layers; ++i)
    x = m.layer("block", "vit.encoder.layer." + std::to_string(i) + ".", {x},
                [&](Builder& b, ValueRange in) {
                  return ValueList{block(b, in[0], c)};
                })[0];
  x = m.layerNorm(x, "vit.layernorm", c.epsilon);
  if (!classifies) return m.finish({{x, "y"}});
  const Value first = m.reshape(m.slice(x, 1, 0, 1), {batch, c.width});
  return m.finish({{m.linear(first, "classifier", c.classes), "y"}});
}

}  // namespace partita::huggingface
