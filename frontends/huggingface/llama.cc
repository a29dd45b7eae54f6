// Llama: a decoder with rotary positions, grouped key-value heads, RMS norms
// and a gated MLP (Touvron et al., 2023). Mistral adds a sliding window (Jiang
// et al., 2023).
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

}  // namespace

OwningModule buildLlama(ModelSource& source) {
  DecoderConfig c(source.config, source.options.dropout,
                  defaultsOf(source.config));
  HeadsConfig heads(source.config, c);
  heads.readWindow(source.config, c.defaults);
  const bool mlp_bias = source.config.flag("mlp_bias", false);
  const LayerKind block = {
      "block", [&](Builder& b, const LayerInputs& in) {
        const Value x = attend(b, in, c, heads);
        const Value normed =
            b.rmsNorm(x, "post_attention_layernorm", c.epsilon);
        return ValueList{
            b.add(x, gatedMlp(b, normed, "mlp", c.inner, c, mlp_bias))};
      }};
  return buildDecoder(source, c, [&](int64_t) { return block; });
}

}  // namespace partita::huggingface
