// Decoders with rotary positions, RMS norms and gated MLPs: the parts that
// Llama and its relatives share.
#ifndef PARTITA_FRONTENDS_HUGGINGFACE_DECODER_H_
#define PARTITA_FRONTENDS_HUGGINGFACE_DECODER_H_

#include <functional>
#include <optional>
#include <string>

#include "frontends/huggingface/builder.h"
#include "frontends/huggingface/cache.h"
#include "frontends/huggingface/models.h"
#include "frontends/huggingface/rotary.h"
#include "frontends/huggingface/sparse_mlp.h"

namespace partita::huggingface {

// Values that transformers takes for missing keys of a config; they differ
// between models.
struct DecoderDefaults {
  int64_t positions = 2048;
  double epsilon = 1e-6;
  double theta = 1e4;             // of the rotary positions
  std::optional<int64_t> groups;  // key-value heads; absent: all heads
  std::optional<int64_t> window;  // keys that a query sees; absent: all
  std::optional<int64_t> head;    // its size; absent: width / heads
};

struct DecoderConfig {
  DecoderConfig(Config& config, std::optional<double> forced_dropout,
                const DecoderDefaults& defaults);

  DecoderDefaults defaults;
  int64_t vocabulary, width, inner, layers, heads, positions;
  double epsilon, attention_dropout;
  std::string activation;
  bool tied;
  Rotary rotary;  // read by the model, which knows the rotated size
};

// Grouped key-value heads.
struct HeadsConfig {
  // Reads the heads, and the rotary positions of `decoder`.
  HeadsConfig(Config& config, DecoderConfig& decoder);
  // Reads `window` from "sliding_window"; null is no window.
  void readWindow(Config& config, const DecoderDefaults& defaults);

  int64_t groups, head;
  bool bias;
  bool has_norms = false;         // normalises each query and key
  std::optional<int64_t> window;  // keys that a query sees at most
};

// The inputs of a layer. `mask`, a bias, may be null, and so may `kept`, the
// mask [B, L] of integers. Attention replaces the keys and values of `cache` by
// those after the step.
struct LayerInputs {
  Value x, cosine, sine, mask, kept;
  LayerCache cache = {};
};

// x + attention(norm(x)), with weights "self_attn.*".
Value attend(Builder& b, LayerInputs& in, const DecoderConfig& c,
             const HeadsConfig& heads);
// down(activation(gate(x)) * up(x)), with weights "<name>.gate_proj.weight" ...
Value gatedMlp(Builder& b, Value x, const std::string& name, int64_t inner,
               const DecoderConfig& c, bool bias = false);
// Experts with the decoder's activation, without their router and the names of
// their weights. The keys name their number and inner size.
ExpertsConfig readExperts(Config& config, const DecoderConfig& c,
                          const char* count_key, const char* inner_key);
// The initial values of the matrices that end in the residual stream.
Init residualInit(const DecoderConfig& c);

// A kind of layer: one function in the module for all layers of this name. The
// first result is the layer's; sparse ones may append a router's statistics.
struct LayerKind {
  std::string name;
  std::function<ValueList(Builder&, LayerInputs&)> body;
};

// The keys and values of a layer.
struct CacheSizes {
  int64_t heads, key, value;  // heads, elements of one head
  std::optional<int64_t> window;
};
inline CacheSizes cacheOf(const HeadsConfig& heads) {
  return {heads.groups, heads.head, heads.head, heads.window};
}

// The module of a decoder. `kindOf` gives the kind of each layer. Layers get
// `kept` if `losses` are used.
OwningModule buildDecoder(ModelSource& source, const DecoderConfig& c,
                          const CacheSizes& sizes,
                          const std::function<LayerKind(int64_t)>& kindOf,
                          const RouterLosses& losses = {});

}  // namespace partita::huggingface

#endif  // PARTITA_FRONTENDS_HUGGINGFACE_DECODER_H_
