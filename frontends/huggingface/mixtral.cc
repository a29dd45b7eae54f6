// Mixtral (Jiang et al., 2024) and Qwen3's mixtures of experts (Qwen team,
// 2025): Llama with experts in place of MLPs.
#include <set>

#include "frontends/huggingface/decoder.h"

namespace partita::huggingface {
namespace {

// Experts whose scores are a softmax. `key` is the model's own name for their
// number, `chosen` how many a row takes unless the config says it.
ExpertsConfig readSoftmaxExperts(Config& config, const DecoderConfig& c,
                                 const char* key, const char* inner_key,
                                 int64_t chosen, const std::string& mlp) {
  // transformers reads both names, and version 5 writes the first.
  const char* count_key = config.has("num_local_experts") ? "num_local_experts"
                          : config.has("num_experts")     ? "num_experts"
                                                          : key;
  ExpertsConfig experts = readExperts(config, c, count_key, inner_key);
  experts.routing.top_k = config.size("num_experts_per_tok", chosen);
  experts.router = mlp + ".gate.weight";
  checkChoice(config, count_key, "num_experts_per_tok", experts);
  return experts;
}

ValueList expertsBlock(Builder& b, LayerInputs& in, const DecoderConfig& c,
                       const HeadsConfig& heads, const ExpertsConfig& experts,
                       const RouterLosses& losses) {
  const Value x = attend(b, in, c, heads);
  ValueList results(1);
  results[0] = b.add(
      x, sparseMlp(b, b.rmsNorm(x, "post_attention_layernorm", c.epsilon),
                   experts, losses.areUsed() ? &results : nullptr, in.kept));
  return results;
}

}  // namespace

OwningModule buildMixtral(ModelSource& source) {
  Config& config = source.config;
  DecoderDefaults defaults;
  defaults.positions = 131072;
  defaults.epsilon = 1e-5;
  defaults.theta = 1e6;
  defaults.groups = 8;
  DecoderConfig c(config, source.options.dropout, defaults);
  HeadsConfig heads(config, c);
  heads.readWindow(config, defaults);
  ExpertsConfig experts =
      readSoftmaxExperts(config, c, "num_local_experts", "intermediate_size",
                         /*chosen=*/2, "block_sparse_moe");
  experts.routing.is_normalised = true;
  experts.gate_name = "block_sparse_moe.experts.*.w1.weight";
  experts.up_name = "block_sparse_moe.experts.*.w3.weight";
  experts.down_name = "block_sparse_moe.experts.*.w2.weight";
  const RouterLosses losses = RouterLosses::read(
      config, source.options.training, /*has_log_sums=*/false);
  refuseRouterNoise(config, source.options.training);
  const LayerKind block = {"block", [&](Builder& b, LayerInputs& in) {
                             return expertsBlock(b, in, c, heads, experts,
                                                 losses);
                           }};
  return buildDecoder(
      source, c, cacheOf(heads), [&](int64_t) { return block; }, losses);
}

OwningModule buildQwen3Moe(ModelSource& source) {
  Config& config = source.config;
  DecoderDefaults defaults;
  defaults.positions = 32768;
  defaults.groups = 4;
  defaults.window = 4096;
  DecoderConfig c(config, source.options.dropout, defaults);
  HeadsConfig heads(config, c);
  heads.has_norms = true;
  ExpertsConfig experts =
      readSoftmaxExperts(config, c, "num_experts", "moe_intermediate_size",
                         /*chosen=*/8, "mlp");
  experts.routing.is_normalised = config.flag("norm_topk_prob", false);
  experts.gate_name = "mlp.experts.*.gate_proj.weight";
  experts.up_name = "mlp.experts.*.up_proj.weight";
  experts.down_name = "mlp.experts.*.down_proj.weight";
  if (config.flag("use_sliding_window", false))
    heads.readWindow(config, defaults);
  const RouterLosses losses = RouterLosses::read(
      config, source.options.training, /*has_log_sums=*/false);
  refuseRouterNoise(config, source.options.training);
  const int64_t step = config.size("decoder_sparse_step", 1);
  std::set<int64_t> dense;
  if (config.has("mlp_only_layers"))
    for (const int64_t layer : config.indices("mlp_only_layers"))
      dense.insert(layer);

  const LayerKind sparse_block = {"block", [&](Builder& b, LayerInputs& in) {
                                    return expertsBlock(b, in, c, heads,
                                                        experts, losses);
                                  }};
  const LayerKind dense_block = {
      "dense_block", [&](Builder& b, LayerInputs& in) {
        const Value x = attend(b, in, c, heads);
        const Value normed =
            b.rmsNorm(x, "post_attention_layernorm", c.epsilon);
        return ValueList{b.add(x, gatedMlp(b, normed, "mlp", c.inner, c))};
      }};
  const auto kindOf = [&](int64_t i) {
    return dense.count(i) > 0 || (i + 1) % step != 0 ? dense_block
                                                     : sparse_block;
  };
  return buildDecoder(source, c, cacheOf(heads), kindOf, losses);
}

}  // namespace partita::huggingface
