// CoAtNet: inverted bottlenecks with squeeze-and-excitation, then attention
// with relative positions (Dai et al., 2021), in the variants and with the
// names of timm's MaxxVit.
//
// Convolution stages keep images as [B, C, H, W]. Attention stages keep tokens
// as [B, H * W, C]; there, a 1x1 convolution is a product with its [out, in]
// weight.
#include <cmath>

#include "frontends/huggingface/builder.h"
#include "frontends/huggingface/models.h"
#include "llvm/ADT/StringExtras.h"

namespace partita::huggingface {
namespace {

struct ConvConfig {
  double expand_ratio, se_ratio, epsilon;
  int64_t kernel;
  bool pre_norm_act, expand_output, output_bias, pool_stride, se_early,
      max_pool;
  std::string activation, se_activation;
};

struct AttentionConfig {
  double expand_ratio, epsilon, layer_scale;
  int64_t head, position_hidden;  // 0: a table of biases instead of an MLP
  bool expand_first, shortcut_bias, attention_bias, max_pool, batch_norm;
  std::string activation;
};

struct Block {
  std::string prefix;
  bool attention;
  int64_t width, stride;
};

// E.g. "gelu (erf)" gives "gelu".
std::string firstWord(const std::string& text) {
  return text.substr(0, text.find(' '));
}

// Parses e.g. "early, ratio 0.25, relu".
void readSqueeze(Config& config, ConvConfig& conv) {
  const std::string text = config.text("se", "ratio 0.25, silu");
  conv.se_early = false;
  conv.se_ratio = 0.0;
  llvm::SmallVector<StringRef> parts;
  StringRef(text).split(parts, ',');
  for (StringRef part : parts) {
    part = part.trim();
    if (part == "early")
      conv.se_early = true;
    else if (part.consume_front("ratio ") && !part.getAsDouble(conv.se_ratio))
      continue;
    else
      conv.se_activation = part.str();
  }
  if (conv.se_ratio <= 0.0 || conv.se_ratio > 1.0)
    config.complain("'conv.se': expected a ratio in (0, 1], found '" + text +
                    "'");
  config.expectOneOf("se", conv.se_activation, Builder::activationNames());
}

ConvConfig readConv(Config config, Config& whole) {
  ConvConfig conv;
  conv.expand_ratio = config.number("expand_ratio", 4.0);
  conv.epsilon = config.number("norm_eps", 1e-5);
  conv.kernel = config.size("kernel_size", 3);
  conv.pre_norm_act = config.flag("pre_norm_act", false);
  conv.expand_output = config.flag("expand_output", false);
  conv.output_bias = config.flag("output_bias", false);
  conv.activation = config.text("act", "silu");
  const std::string stride = config.text("stride", "depthwise"),
                    pool = config.text("pool", "avg 2x2");
  conv.pool_stride = stride == "avg-pool 2x2";
  conv.max_pool = pool == "max 3x3";
  readSqueeze(config, conv);
  config.expectOneOf("block", config.text("block", "mbconv"), {"mbconv"});
  config.expectOneOf("stride", stride, {"avg-pool 2x2", "depthwise"});
  config.expectOneOf("pool", pool, {"avg 2x2", "max 3x3"});
  config.expectOneOf("act", conv.activation, Builder::activationNames());
  config.expectOneOf("norm", config.text("norm", "batchnorm"), {"batchnorm"});
  if (conv.kernel % 2 == 0)
    config.complain("'conv.kernel_size': expected an odd number");
  if (conv.expand_ratio <= 0.0 || conv.expand_ratio > 64.0)
    config.complain("'conv.expand_ratio': expected at most 64");
  whole.absorb(config);
  return conv;
}

AttentionConfig readAttention(Config config, Config& whole) {
  AttentionConfig attention;
  attention.expand_ratio = config.number("expand_ratio", 4.0);
  attention.epsilon = config.number("norm_eps", 1e-6);
  attention.layer_scale = config.number("init_values", 0.0);
  attention.head = config.size("dim_head", 32);
  if (!config.flag("head_first", true))
    config.complain("'transformer.head_first': expected true, found false");
  attention.expand_first = config.flag("expand_first", false);
  attention.shortcut_bias = config.flag("shortcut_bias", true);
  attention.attention_bias = config.flag("attn_bias", true);
  attention.activation = firstWord(config.text("act", "gelu"));
  const std::string pool = firstWord(config.text("pool", "avg 2x2")),
                    norm = firstWord(config.text("norm", "layernorm2d"));
  attention.max_pool = pool == "max";
  attention.batch_norm = norm == "batchnorm";
  const std::string positions = config.text("rel_pos", "bias table");
  attention.position_hidden = 0;
  StringRef mlp = positions;
  if (positions != "bias table" &&
      (!mlp.consume_front("mlp ") ||
       mlp.getAsInteger(10, attention.position_hidden) ||
       attention.position_hidden < 1 || attention.position_hidden > 65536))
    config.complain(
        "'transformer.rel_pos': expected 'bias table' or 'mlp <hidden>', found "
        "'" +
        positions + "'");
  config.expectOneOf("pool", pool, {"avg", "max"});
  config.expectOneOf("norm", norm, {"layernorm2d", "batchnorm"});
  config.expectOneOf("act", attention.activation, Builder::activationNames());
  if (attention.expand_ratio <= 0.0 || attention.expand_ratio > 64.0)
    config.complain("'transformer.expand_ratio': expected at most 64");
  whole.absorb(config);
  return attention;
}

struct CoatnetConfig {
  explicit CoatnetConfig(Config& config);

  int64_t classes, channels, image, head_hidden;
  std::vector<int64_t> stem;
  std::vector<Block> blocks;
  ConvConfig conv;
  AttentionConfig attention;
};

Config section(Config& config, const char* key) {
  static const nlohmann::json kNone = nlohmann::json::object();
  const bool there = config.has(key) && config.values()[key].is_object();
  if (!there)
    config.complain(std::string("'") + key +
                    "': expected a section, found none");
  return Config(there ? config.values()[key] : kNone, config.loc(),
                std::string(key) + ".");
}

CoatnetConfig::CoatnetConfig(Config& config)
    : classes(config.size("num_classes", 1000)),
      channels(config.size("in_chans", 3)),
      image(config.size("img_size", 224)),
      head_hidden(
          config.has("head_hidden_size") ? config.size("head_hidden_size") : 0),
      stem(config.sizes("stem_width")),
      conv(readConv(section(config, "conv"), config)),
      attention(readAttention(section(config, "transformer"), config)) {
  const std::vector<int64_t> widths = config.sizes("embed_dim"),
                             depths = config.sizes("depths");
  const std::vector<std::string> kinds = config.texts("block_type");
  const std::vector<int64_t> strides =
      config.has("strides") ? config.sizes("strides")
                            : std::vector<int64_t>(widths.size(), 2);
  if (stem.size() != 2)
    config.complain("'stem_width': expected 2 widths, found " +
                    std::to_string(stem.size()));
  if (depths.size() != widths.size() || kinds.size() != widths.size() ||
      strides.size() != widths.size()) {
    config.complain(
        "'embed_dim', 'depths', 'block_type': expected one entry per stage, "
        "found " +
        std::to_string(widths.size()) + ", " + std::to_string(depths.size()) +
        ", " + std::to_string(kinds.size()));
    return;
  }
  for (size_t stage = 0; stage < widths.size(); ++stage) {
    config.expectOneOf("block_type", kinds[stage], {"C", "T"});
    if (stage > 0 && kinds[stage - 1] == "T" && kinds[stage] == "C")
      config.complain(
          "'block_type': expected stages of convolutions (C) before those of "
          "attention (T)");
    if (strides[stage] > 2)
      config.complain("'strides': expected 1 or 2, found " +
                      std::to_string(strides[stage]));
    if (depths[stage] > 4096)
      config.complain("'depths': expected at most 4096, found " +
                      std::to_string(depths[stage]));
    if (kinds[stage] == "T")
      config.expectDivides("dim_head", attention.head, "embed_dim",
                           widths[stage]);
    for (int64_t i = 0; i < std::min<int64_t>(depths[stage], 4096); ++i)
      blocks.push_back({"stages." + std::to_string(stage) + ".blocks." +
                            std::to_string(i) + ".",
                        kinds[stage] == "T", widths[stage],
                        i == 0 ? strides[stage] : 1});
  }
}

// Variance scaling: a layer preserves the variance of its input.
Init scaled(int64_t fan_in) {
  return Init::normal(1.0 / std::sqrt(static_cast<double>(fan_in)));
}

Value convolve(Builder& b, Value x, const std::string& name, int64_t out,
               int64_t kernel, int64_t stride, bool depthwise, bool bias) {
  const int64_t in = b.shapeOf(x)[1], per_group = depthwise ? 1 : in;
  const Value w = b.weight(name + ".weight", {out, per_group, kernel, kernel},
                           scaled(per_group * kernel * kernel));
  const Value y = b.conv(x, w, stride, kernel / 2, depthwise ? in : 1);
  return bias ? b.addChannelBias(y,
                                 b.weight(name + ".bias", {out}, Init::zeros()))
              : y;
}

// A 1x1 convolution with channels last.
Value pointwise(Builder& b, Value x, const std::string& name, int64_t out,
                bool bias) {
  const int64_t in = b.shapeOf(x).back();
  const Value w = b.reshape(
      b.weight(name + ".weight", {out, in, 1, 1}, scaled(in)), {out, in});
  return b.project(
      x, w, bias ? b.weight(name + ".bias", {out}, Init::zeros()) : Value());
}

// Halves the image's height (dimension `dim`) and width (the next dimension)
// with 2x2 mean pooling or 3x3 max pooling.
Value pool(Builder& b, Value x, int64_t dim, bool max) {
  Shape shape(b.shapeOf(x)), window(4, 1), strides(4, 1), dilations(4, 1),
      padding(4, 0);
  for (const int64_t d : {dim, dim + 1}) {
    window[d] = max ? 3 : 2;
    strides[d] = 2;
    padding[d] = max ? 1 : 0;
    shape[d] =
        nn::windowedSize(shape[d], window[d], 2, 1, padding[d], padding[d]);
  }
  const auto type = mlir::RankedTensorType::get(shape, b.ops().getF32Type());
  const auto kind = max ? nn::ReduceKind::max : nn::ReduceKind::sum;
  const Value pooled =
      nn::ReduceWindowOp::create(b.ops(), b.loc(), type, kind, x, window,
                                 strides, dilations, padding, padding);
  return max ? pooled : b.scale(pooled, 0.25);
}

// Multiplies x by a gate per channel, computed from the means of all channels.
Value squeezeExcite(Builder& b, Value x, const std::string& name,
                    int64_t reduced, const ConvConfig& c) {
  const Shape shape(b.shapeOf(x));
  const Value mean =
      b.scale(b.sum(x, {2, 3}), 1.0 / static_cast<double>(shape[2] * shape[3]));
  const Value hidden = b.activation(
      pointwise(b, mean, name + ".fc1", reduced, true), c.se_activation);
  const Value gate =
      b.sigmoid(pointwise(b, hidden, name + ".fc2", shape[1], true));
  return b.mul(x, b.broadcast(gate, shape, {0, 1}));
}

Value convBlock(Builder& b, Value x, const Block& block, const ConvConfig& c) {
  const int64_t in = b.shapeOf(x)[1];
  // Rounds to a multiple of 8, like timm.
  const int64_t wide = static_cast<int64_t>(
      static_cast<double>(c.expand_output ? block.width : in) * c.expand_ratio);
  const int64_t middle = std::max<int64_t>(8, (wide + 4) / 8 * 8);
  const int64_t reduced = std::max<int64_t>(
      1, static_cast<int64_t>(c.se_ratio * static_cast<double>(c.expand_output
                                                                   ? block.width
                                                                   : middle)));
  const auto norm = [&](Value y, const char* name) {
    return b.batchNorm(y, name, c.epsilon, 1);
  };
  const auto normActivate = [&](Value y, const char* name) {
    return b.activation(norm(y, name), c.activation);
  };

  Value shortcut = block.stride == 2 ? pool(b, x, 2, c.max_pool) : x;
  if (in != block.width)
    shortcut = convolve(b, shortcut, "shortcut.expand", block.width, 1, 1,
                        false, c.output_bias);
  x = c.pre_norm_act ? normActivate(x, "pre_norm") : norm(x, "pre_norm");
  if (block.stride == 2 && c.pool_stride) x = pool(b, x, 2, /*max=*/false);
  x = normActivate(convolve(b, x, "conv1_1x1", middle, 1, 1, false, false),
                   "norm1");
  x = convolve(b, x, "conv2_kxk", middle, c.kernel,
               c.pool_stride ? 1 : block.stride, true, false);
  if (c.se_early) x = squeezeExcite(b, x, "se_early", reduced, c);
  x = normActivate(x, "norm2");
  if (!c.se_early) x = squeezeExcite(b, x, "se", reduced, c);
  return b.add(
      convolve(b, x, "conv3_1x1", block.width, 1, 1, false, c.output_bias),
      shortcut);
}

// [1, heads, L, L]: a bias per head and per offset between two positions of a
// side x side image.
Value positionBias(Builder& b, int64_t side, int64_t heads,
                   const AttentionConfig& c) {
  const int64_t offsets = 2 * side - 1, length = side * side;
  Value table;
  if (c.position_hidden == 0) {
    table = b.weight("attn.rel_pos.relative_position_bias_table",
                     {offsets * offsets, heads}, Init::normal());
  } else {
    // An MLP on the signed logarithms of the offsets.
    std::vector<float> coordinates;
    const auto log = [&](int64_t i) {
      const float offset = static_cast<float>(i - side + 1);
      return std::copysign(std::log(1.0f + std::abs(offset)), offset);
    };
    for (int64_t row = 0; row < offsets; ++row)
      for (int64_t column = 0; column < offsets; ++column)
        coordinates.insert(coordinates.end(), {log(row), log(column)});
    const Value points = b.floats({offsets * offsets, 2}, coordinates);
    const Value hidden = b.linear(points, "attn.rel_pos.mlp.fc1",
                                  c.position_hidden, true, scaled(2));
    table =
        b.linear(b.activation(hidden, "relu"), "attn.rel_pos.mlp.fc2", heads);
  }
  const Shape grid = {side, side, side, side};
  const Value shift = b.integerSplat(grid, side - 1);
  const auto offset = [&](int64_t dim) {
    return b.addIntegers(
        b.subIntegers(b.iota(grid, dim), b.iota(grid, dim + 2)), shift);
  };
  const Value row = offset(0), column = offset(1);
  const Value index =
      b.addIntegers(b.mulIntegers(row, b.integerSplat(grid, offsets)), column);
  const Value bias = b.rows(table, b.reshape(index, {length, length}));
  return b.reshape(b.transpose(bias, {2, 0, 1}), {1, heads, length, length});
}

Value attend(Builder& b, Value x, int64_t side, int64_t out,
             const AttentionConfig& c) {
  const Shape shape(b.shapeOf(x));
  const int64_t width = c.expand_first ? out : shape[2], heads = width / c.head;
  const Value qkv = pointwise(b, x, "attn.qkv", 3 * width, c.attention_bias);
  const Value bias = positionBias(b, side, heads, c);
  // The layout is head by head, each with its q, k and v.
  const Value by_head = b.reshape(qkv, {shape[0], shape[1], heads, 3 * c.head});
  const auto part = [&](int64_t i) {
    return b.transpose(b.slice(by_head, 3, i * c.head, c.head), {0, 2, 1, 3});
  };
  const Value q = part(0), k = part(1), v = part(2);
  const Value seen =
      b.attention(q, k, v, bias, 1.0 / std::sqrt(static_cast<double>(c.head)),
                  /*causal=*/false);
  return pointwise(b, b.mergeHeads(seen), "attn.proj", out, c.attention_bias);
}

Value attentionNorm(Builder& b, Value x, const std::string& name,
                    const AttentionConfig& c) {
  return c.batch_norm ? b.batchNorm(x, name, c.epsilon, b.rankOf(x) - 1)
                      : b.layerNorm(x, name, c.epsilon);
}

Value attentionBlock(Builder& b, Value x, const Block& block,
                     const AttentionConfig& c) {
  const Shape shape(b.shapeOf(x));
  int64_t side = static_cast<int64_t>(
      std::lround(std::sqrt(static_cast<double>(shape[1]))));
  const auto half = [&](Value y) {
    const Value pooled =
        pool(b, b.reshape(y, {shape[0], side, side, shape[2]}), 1, c.max_pool);
    const llvm::ArrayRef<int64_t> small = b.shapeOf(pooled);
    return b.reshape(pooled, {small[0], small[1] * small[2], small[3]});
  };
  const auto layerScale = [&](Value y, const std::string& name) {
    if (c.layer_scale == 0.0) return y;
    const Value gamma = b.weight(name + ".gamma", {block.width}, Init::ones());
    return b.mul(y, b.broadcast(gamma, b.shapeOf(y), {2}));
  };
  const bool down = block.stride == 2;
  Value shortcut = down ? half(x) : x;
  if (shape[2] != block.width)
    shortcut =
        pointwise(b, shortcut, "shortcut.expand", block.width, c.shortcut_bias);
  x = attentionNorm(b, x, down ? "norm1.norm" : "norm1", c);
  if (down) {
    x = half(x);
    side = (side + 1) / 2;
  }
  x = b.add(shortcut, layerScale(attend(b, x, side, block.width, c), "ls1"));
  const int64_t hidden =
      static_cast<int64_t>(static_cast<double>(block.width) * c.expand_ratio);
  const Value normed = attentionNorm(b, x, "norm2", c);
  const Value up =
      b.activation(pointwise(b, normed, "mlp.fc1", hidden, true), c.activation);
  return b.add(
      x, layerScale(pointwise(b, up, "mlp.fc2", block.width, true), "ls2"));
}

// Converts [B, C, H, W] to [B, H * W, C].
Value toTokens(Builder& b, Value x) {
  const llvm::ArrayRef<int64_t> shape = b.shapeOf(x);
  return b.transpose(b.reshape(x, {shape[0], shape[1], shape[2] * shape[3]}),
                     {0, 2, 1});
}

Value classify(ModelBuilder& m, Value x, const CoatnetConfig& c) {
  const auto mean = [&](Value y) {
    return m.scale(m.sum(y, {1}), 1.0 / static_cast<double>(m.shapeOf(y)[1]));
  };
  if (c.head_hidden == 0)
    return m.linear(mean(attentionNorm(m, x, "norm", c.attention)), "head.fc",
                    c.classes);
  x = attentionNorm(m, mean(x), "head.norm", c.attention);
  x = m.activation(m.linear(x, "head.pre_logits.fc", c.head_hidden), "tanh");
  return m.linear(x, "head.fc", c.classes);
}

}  // namespace

OwningModule buildCoatnet(ModelSource& source) {
  if (source.options.dropout.value_or(0) != 0)
    source.config.complain(
        "--dropout: expected 0 or none, CoAtNet has no dropout");
  const CoatnetConfig c(source.config);
  source.weights.ignore({"*.num_batches_tracked"});
  ModelBuilder m(source.context, source.config, source.weights, source.options,
                 {"batch", "image"}, {});
  int64_t reduction = 2;
  for (const Block& block : c.blocks) reduction *= block.stride;
  // Stored position tables have the config's size.
  const bool small = source.options.small_dims && source.weights.isSeeded();
  const int64_t batch = m.dim("batch", 1),
                image = m.dim("image", small ? 2 * reduction : c.image);
  if (image % reduction != 0)
    source.config.complain("dimension 'image': expected a multiple of " +
                           std::to_string(reduction) + ", found " +
                           std::to_string(image));
  m.expectAtMost("image", image, 8192, "the table of positions");
  if (failed(m.check())) return nullptr;

  Value x = m.input("x", {batch, c.channels, image, image});
  x = convolve(m, x, "stem.conv1", c.stem[0], 3, 2, false, false);
  x = m.activation(m.batchNorm(x, "stem.norm1", c.conv.epsilon, 1),
                   c.conv.activation);
  x = convolve(m, x, "stem.conv2", c.stem[1], 3, 1, false, false);
  for (const Block& block : c.blocks) {
    const std::string variant =
        std::to_string(block.width) + "/" + std::to_string(block.stride);
    if (block.attention && m.rankOf(x) == 4) x = toTokens(m, x);
    const auto body = [&](Builder& b, ValueRange in) {
      return ValueList{block.attention
                           ? attentionBlock(b, in[0], block, c.attention)
                           : convBlock(b, in[0], block, c.conv)};
    };
    x = m.layer(block.attention ? "attention_block" : "conv_block",
                block.prefix, {x}, body, variant)[0];
  }
  if (m.rankOf(x) == 4) x = toTokens(m, x);
  return m.finish({{classify(m, x, c), "y"}});
}

}  // namespace partita::huggingface
