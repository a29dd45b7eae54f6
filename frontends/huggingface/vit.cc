// ViT: an image as a sequence of patches, a class token, pre-norm blocks
// (Dosovitskiy et al., 2021). V-MoE has experts in some of them (Riquelme et
// al., 2021).
#include <algorithm>
#include <cmath>
#include <set>

#include "dialects/nn/result_names.h"
#include "frontends/huggingface/builder.h"
#include "frontends/huggingface/models.h"
#include "frontends/huggingface/sparse_mlp.h"

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
  std::set<int64_t> sparse;  // layers with experts
  ExpertsConfig experts;
  double importance = 0;  // factor of the routers' loss
};

// Experts are MLPs of the dense size. Those of a layer take
// `capacity_factor` * choices / experts rows each, the surest rows of
// `images_per_group` images first (0: of the batch).
void readExperts(Config& config, VitConfig& c, bool training, int64_t batch) {
  for (const int64_t layer : config.indices("expert_layers"))
    c.sparse.insert(layer);
  if (!c.sparse.empty() && *c.sparse.rbegin() >= c.layers)
    config.complain("'expert_layers': expected layers below " +
                    std::to_string(c.layers) + ", found " +
                    std::to_string(*c.sparse.rbegin()));
  ExpertsConfig& experts = c.experts;
  experts.count = config.experts("num_experts");
  experts.inner = c.inner;
  experts.activation = c.activation;
  experts.routing.top_k = config.size("num_experts_per_tok", 2);
  experts.routing.is_prioritised = config.flag("batch_prioritized", true);
  const double factor = config.number("capacity_factor", 1.05);
  if (!(factor > 0))
    config.complain("'capacity_factor': expected more than 0, found " +
                    nlohmann::json(factor).dump());
  const int64_t side = (c.image - c.patch) / c.patch + 1,
                images = config.count("images_per_group", 0);
  experts.sequences_per_group = images > 0 ? images : batch;
  if (images > 0 && batch % images != 0)
    config.complain("'images_per_group': expected a divisor of the batch (" +
                    std::to_string(batch) + "), found " +
                    std::to_string(images));
  const double rows =
      static_cast<double>(experts.sequences_per_group * (1 + side * side));
  experts.routing.capacity = std::max<int64_t>(
      1,
      std::llround(factor * rows * static_cast<double>(experts.routing.top_k) /
                   static_cast<double>(experts.count)));
  experts.router = "experts.router.weight";
  experts.up_name = "experts.*.intermediate.weight";
  experts.up_bias = "experts.*.intermediate.bias";
  experts.down_name = "experts.*.output.weight";
  experts.down_bias = "experts.*.output.bias";
  config.expectOneOf("hidden_act", c.activation, expertActivationNames());
  checkChoice(config, "num_experts", "num_experts_per_tok", experts);
  const double importance = config.number("importance_loss_coef", 0.005);
  if (training) c.importance = importance;
  if (training && c.dropout > 0.0)
    config.complain(
        "'hidden_dropout_prob': expected 0 for training (--dropout 0 sets it), "
        "found " +
        nlohmann::json(c.dropout).dump() +
        "; dropout within experts is not supported");
}

ValueList block(Builder& b, Value x, const VitConfig& c, bool is_sparse) {
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
  const Value after = b.layerNorm(x, "layernorm_after", c.epsilon);
  if (is_sparse) {
    ValueList results(1);
    results[0] = b.add(x, sparseMlp(b, after, c.experts,
                                    c.importance > 0 ? &results : nullptr));
    return results;
  }
  const Value up = b.linear(after, "intermediate.dense", c.inner);
  return {b.add(x, dense(b.activation(up, c.activation), "output.dense"))};
}

// The mean of the layers' losses.
Value importanceLoss(ModelBuilder& m, ArrayRef<Value> scores, double factor) {
  builder::Emitter e(m.ops());
  e.start(m.loc());
  builder::Val sum;
  for (const Value of_layer : scores) {
    const builder::Val loss = builder::importanceLoss(e, {of_layer});
    sum = sum ? e.add(sum, loss) : loss;
  }
  return e.mul(sum, factor / static_cast<double>(scores.size())).value;
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

static OwningModule buildModel(ModelSource& source, bool has_experts) {
  VitConfig c(source.config, source.options.dropout);
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
  if (has_experts)
    readExperts(source.config, c, source.options.training, batch);
  if (failed(m.check())) return nullptr;

  const Value pixels =
      m.input("pixel_values", {batch, c.channels, c.image, c.image});
  m.seedInput({c.dropout, c.attention_dropout});
  Value x = embed(m, pixels, c);
  ValueList scores;  // of the routers
  for (int64_t i = 0; i < c.layers; ++i) {
    const bool is_sparse = c.sparse.count(i) > 0;
    const ValueList results =
        m.layer(is_sparse ? "sparse_block" : "block",
                "vit.encoder.layer." + std::to_string(i) + ".", {x},
                [&](Builder& b, ValueRange in) {
                  return block(b, in[0], c, is_sparse);
                });
    x = results[0];
    if (results.size() > 1) scores.push_back(results[2]);
  }
  x = m.layerNorm(x, "vit.layernorm", c.epsilon);
  if (classifies) {
    const Value first = m.reshape(m.slice(x, 1, 0, 1), {batch, c.width});
    x = m.linear(first, "classifier", c.classes);
  }
  if (scores.empty()) return m.finish({{x, "y"}});
  return m.finish(
      {{x, "y"},
       {importanceLoss(m, scores, c.importance), nn::kAuxiliaryLossResult}});
}

OwningModule buildVit(ModelSource& source) {
  return buildModel(source, /*has_experts=*/false);
}

OwningModule buildVmoe(ModelSource& source) {
  return buildModel(source, /*has_experts=*/true);
}

}  // namespace partita::huggingface
