// DeepSeek-V3: latent attention, shared experts, and a router that chooses
// within groups of experts by corrected scores (DeepSeek-AI, 2024).
#include <cmath>

#include "frontends/huggingface/decoder.h"

namespace partita::huggingface {
namespace {

// Queries, keys and values come from narrow latent vectors. A key has a part
// per head and a rotated part that all heads share.
struct LatentConfig {
  explicit LatentConfig(Config& config, DecoderConfig& decoder)
      : query_rank(config.isNull("q_lora_rank")
                       ? 0
                       : config.size("q_lora_rank", 1536)),
        rank(config.size("kv_lora_rank")),
        plain(config.size("qk_nope_head_dim")),
        rotated(config.size("qk_rope_head_dim")),
        value(config.size("v_head_dim")),
        interleaved(
            config.flag("rope_interleave", !config.isNull("rope_interleave"))),
        bias(config.flag("attention_bias", false)) {
    decoder.rotary = readRotary(config, "qk_rope_head_dim", rotated,
                                decoder.defaults.theta, decoder.positions);
  }

  int64_t query_rank, rank, plain, rotated, value;
  bool interleaved, bias;
};

Value query(Builder& b, Value x, const DecoderConfig& c,
            const LatentConfig& latent) {
  const int64_t out = c.heads * (latent.plain + latent.rotated);
  if (latent.query_rank == 0)
    return b.linear(x, "self_attn.q_proj", out, /*bias=*/false);
  const Value narrow =
      b.linear(x, "self_attn.q_a_proj", latent.query_rank, latent.bias);
  // The latent norms have a fixed epsilon.
  return b.linear(b.rmsNorm(narrow, "self_attn.q_a_layernorm", 1e-6),
                  "self_attn.q_b_proj", out, /*bias=*/false);
}

// x + attention(norm(x)).
Value attendLatent(Builder& b, LayerInputs& in, const DecoderConfig& c,
                   const LatentConfig& latent) {
  const int64_t plain = latent.plain, rotated = latent.rotated;
  const Value normed = b.rmsNorm(in.x, "input_layernorm", c.epsilon);
  const Value queries = b.splitHeads(query(b, normed, c, latent), c.heads);
  const Value compressed = b.linear(normed, "self_attn.kv_a_proj_with_mqa",
                                    latent.rank + rotated, latent.bias);
  const Value narrow = b.rmsNorm(b.slice(compressed, 2, 0, latent.rank),
                                 "self_attn.kv_a_layernorm", 1e-6);
  const Value wide = b.splitHeads(
      b.linear(narrow, "self_attn.kv_b_proj", c.heads * (plain + latent.value),
               /*bias=*/false),
      c.heads);
  const auto place = [&](Value x) {
    return rotate(b, x, in.cosine, in.sine, latent.interleaved);
  };
  const Value q = b.concat({b.slice(queries, 3, 0, plain),
                            place(b.slice(queries, 3, plain, rotated))},
                           3);
  // One head, repeated for all.
  const Value position =
      place(b.splitHeads(b.slice(compressed, 2, latent.rank, rotated), 1));
  Shape all(b.shapeOf(position));
  const Shape one = {all[0], all[2], all[3]};
  all[1] = c.heads;
  const Value k =
      b.concat({b.slice(wide, 3, 0, plain),
                b.broadcast(b.reshape(position, one), all, {0, 2, 3})},
               3);
  const Value v = b.slice(wide, 3, plain, latent.value);
  const double scale =
      c.rotary.score_scale / std::sqrt(static_cast<double>(plain + rotated));
  const Value seen = b.mergeHeads(attendWithCache(
      b, q, k, v, in.mask, scale, c.attention_dropout, std::nullopt, in.cache));
  return b.add(in.x, b.linear(seen, "self_attn.o_proj", c.width, latent.bias,
                              residualInit(c)));
}

ExpertsConfig readGroupedExperts(Config& config, const DecoderConfig& c) {
  ExpertsConfig experts =
      readExperts(config, c, "n_routed_experts", "moe_intermediate_size");
  builder::RoutingOptions& routing = experts.routing;
  routing.scores = builder::RoutingOptions::Scores::kSigmoid;
  routing.top_k = config.size("num_experts_per_tok", 8);
  routing.groups = config.size("n_group", 8);
  routing.open_groups = config.size("topk_group", 4);
  routing.is_normalised =
      config.flag("norm_topk_prob", !config.isNull("norm_topk_prob"));
  routing.epsilon = 1e-20;
  routing.scale = config.number("routed_scaling_factor", 2.5);
  experts.router = "mlp.gate.weight";
  experts.correction = "mlp.gate.e_score_correction_bias";
  experts.gate_name = "mlp.experts.*.gate_proj.weight";
  experts.up_name = "mlp.experts.*.up_proj.weight";
  experts.down_name = "mlp.experts.*.down_proj.weight";
  // Other ways of scoring and choosing belong to other models of the family.
  config.expectOneOf("scoring_func", config.text("scoring_func", "sigmoid"),
                     {"sigmoid"});
  config.expectOneOf("topk_method", config.text("topk_method", "noaux_tc"),
                     {"noaux_tc"});
  config.expectDivides("n_group", routing.groups, "n_routed_experts",
                       experts.count);
  for (const char* key : {"n_routed_experts", "n_group", "topk_group"})
    if (config.isWrong(key)) return experts;
  if (experts.count / routing.groups < 2 ||
      routing.open_groups > routing.groups)
    config.complain("'topk_group': expected at most 'n_group' (" +
                    std::to_string(routing.groups) +
                    ") groups of at least two experts, found " +
                    std::to_string(routing.open_groups) + " of " +
                    std::to_string(experts.count) + " experts");
  else
    checkChoice(config, "n_routed_experts", "num_experts_per_tok", experts);
  return experts;
}

}  // namespace

OwningModule buildDeepseekV3(ModelSource& source) {
  Config& config = source.config;
  DecoderDefaults defaults;
  defaults.positions = 4096;
  DecoderConfig c(config, source.options.dropout, defaults);
  const LatentConfig latent(config, c);
  const ExpertsConfig experts = readGroupedExperts(config, c);
  const int64_t shared = config.size("n_shared_experts", 1);
  const int64_t dense = config.count("first_k_dense_replace", 3);
  // The layers that predict further tokens come after the model's own.
  source.weights.ignore({"model.layers." + std::to_string(c.layers) + ".*"});

  const auto block = [&](Builder& b, LayerInputs& in, bool is_sparse) {
    const Value x = attendLatent(b, in, c, latent);
    const Value normed = b.rmsNorm(x, "post_attention_layernorm", c.epsilon);
    if (!is_sparse)
      return ValueList{b.add(x, gatedMlp(b, normed, "mlp", c.inner, c))};
    const Value routed = sparseMlp(b, normed, experts);
    return ValueList{
        b.add(x, b.add(routed, gatedMlp(b, normed, "mlp.shared_experts",
                                        shared * experts.inner, c)))};
  };
  const LayerKind dense_block = {
      "dense_block",
      [&](Builder& b, LayerInputs& in) { return block(b, in, false); }};
  const LayerKind sparse_block = {
      "block", [&](Builder& b, LayerInputs& in) { return block(b, in, true); }};
  const CacheSizes sizes = {c.heads, latent.plain + latent.rotated,
                            latent.value, std::nullopt};
  return buildDecoder(source, c, sizes, [&](int64_t i) {
    return i < dense ? dense_block : sparse_block;
  });
}

}  // namespace partita::huggingface
