// Llama: a decoder with rotary positions, grouped key-value heads, RMS norms
// and a gated MLP (Touvron et al., 2023). Mistral adds a sliding window (Jiang
// et al., 2023), Qwen3 norms of queries and keys (Qwen team, 2025).
#include "frontends/huggingface/decoder.h"

namespace partita::huggingface {
namespace {

DecoderDefaults defaultsOf(Config& config) {
  DecoderDefaults defaults;
  if (config.text("model_type", "") == "mistral") {
    defaults.positions = 131072;
    defaults.groups = 8;
    defaults.window = 4096;
  }
  return defaults;
}

OwningModule buildGated(ModelSource& source, DecoderConfig& c,
                        const HeadsConfig& heads, bool mlp_bias) {
  const LayerKind block = {
      "block", [&](Builder& b, LayerInputs& in) {
        const Value x = attend(b, in, c, heads);
        const Value normed =
            b.rmsNorm(x, "post_attention_layernorm", c.epsilon);
        return ValueList{
            b.add(x, gatedMlp(b, normed, "mlp", c.inner, c, mlp_bias))};
      }};
  return buildDecoder(source, c, cacheOf(heads),
                      [&](int64_t) { return block; });
}

}  // namespace

OwningModule buildLlama(ModelSource& source) {
  DecoderConfig c(source.config, source.options.dropout,
                  defaultsOf(source.config));
  HeadsConfig heads(source.config, c);
  heads.readWindow(source.config, c.defaults);
  return buildGated(source, c, heads, source.config.flag("mlp_bias", false));
}

OwningModule buildQwen3(ModelSource& source) {
  Config& config = source.config;
  DecoderDefaults defaults;
  defaults.positions = 32768;
  defaults.groups = 32;
  defaults.head = 128;
  DecoderConfig c(config, source.options.dropout, defaults);
  HeadsConfig heads(config, c);
  heads.has_norms = true;
  // Its windows are those of the upper layers alone.
  if (config.flag("use_sliding_window", false))
    config.complain("'use_sliding_window': expected false, found true");
  return buildGated(source, c, heads, /*mlp_bias=*/false);
}

}  // namespace partita::huggingface
