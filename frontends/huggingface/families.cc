// Models by the name of their architecture, with the configs that their authors
// published.
#include "frontends/huggingface/families.h"

#include <algorithm>

#include "frontends/huggingface/models.h"

namespace partita::huggingface {
namespace {

using nlohmann::json;

json gpt2(int64_t layers, int64_t width, int64_t heads) {
  return {{"model_type", "gpt2"}, {"vocab_size", 50257}, {"n_positions", 1024},
          {"n_embd", width},      {"n_layer", layers},   {"n_head", heads}};
}

json bert(int64_t layers, int64_t width, int64_t heads) {
  return {{"model_type", "bert"},         {"vocab_size", 30522},
          {"hidden_size", width},         {"num_hidden_layers", layers},
          {"num_attention_heads", heads}, {"intermediate_size", 4 * width},
          {"type_vocab_size", 2},         {"max_position_embeddings", 512}};
}

json vit(int64_t layers, int64_t width, int64_t inner, int64_t heads,
         int64_t patch) {
  return {{"model_type", "vit"},         {"hidden_size", width},
          {"num_hidden_layers", layers}, {"num_attention_heads", heads},
          {"intermediate_size", inner},  {"image_size", 224},
          {"patch_size", patch},         {"num_labels", 1000}};
}

// Experts in every second layer, or in the last `sparse` of these.
json vmoe(json config, int64_t sparse) {
  config["model_type"] = "vmoe";
  json layers = json::array();
  for (int64_t i = 1; i < config["num_hidden_layers"]; i += 2)
    layers.push_back(i);
  while (static_cast<int64_t>(layers.size()) > sparse) layers.erase(0);
  config["expert_layers"] = layers;
  config["num_experts"] = 32;
  config["num_experts_per_tok"] = 2;
  config["capacity_factor"] = 1.05;
  return config;
}

json t5(int64_t layers, int64_t width, int64_t head, int64_t inner,
        int64_t heads) {
  return {{"model_type", "t5"}, {"vocab_size", 32128}, {"d_model", width},
          {"d_kv", head},       {"d_ff", inner},       {"num_layers", layers},
          {"num_heads", heads}};
}

json llama(int64_t layers, int64_t width, int64_t inner, int64_t heads,
           int64_t groups) {
  return {{"model_type", "llama"},         {"vocab_size", 32000},
          {"hidden_size", width},          {"intermediate_size", inner},
          {"num_hidden_layers", layers},   {"num_attention_heads", heads},
          {"num_key_value_heads", groups}, {"rms_norm_eps", 1e-5},
          {"rope_theta", 10000.0},         {"max_position_embeddings", 4096}};
}

json llama3(int64_t layers, int64_t width, int64_t inner, int64_t heads,
            double factor) {
  json config = llama(layers, width, inner, heads, /*groups=*/8);
  config["vocab_size"] = 128256;
  config["rope_theta"] = 500000.0;
  config["max_position_embeddings"] = 131072;
  config["rope_scaling"] = {{"rope_type", "llama3"},
                            {"factor", factor},
                            {"low_freq_factor", 1.0},
                            {"high_freq_factor", 4.0},
                            {"original_max_position_embeddings", 8192}};
  return config;
}

json mixtral(int64_t layers, int64_t width, int64_t inner, int64_t heads,
             int64_t positions) {
  json config = llama(layers, width, inner, heads, /*groups=*/8);
  config["model_type"] = "mixtral";
  config["rope_theta"] = 1e6;
  config["max_position_embeddings"] = positions;
  config["num_local_experts"] = 8;
  config["num_experts_per_tok"] = 2;
  return config;
}

json qwen3Moe(int64_t layers, int64_t width, int64_t inner, int64_t heads) {
  json config = llama(layers, width, /*inner=*/3 * width, heads, /*groups=*/4);
  config["model_type"] = "qwen3_moe";
  config["vocab_size"] = 151936;
  config["head_dim"] = 128;
  config["moe_intermediate_size"] = inner;
  config["num_experts"] = 128;
  config["num_experts_per_tok"] = 8;
  config["norm_topk_prob"] = true;
  config["rms_norm_eps"] = 1e-6;
  config["rope_theta"] = 1e6;
  config["max_position_embeddings"] = 40960;
  return config;
}

json deepseekV3() {
  json config = llama(61, 7168, 18432, 128, /*groups=*/128);
  config["model_type"] = "deepseek_v3";
  config["vocab_size"] = 129280;
  config["rms_norm_eps"] = 1e-6;
  config["max_position_embeddings"] = 163840;
  config["rope_scaling"] = {{"type", "yarn"},
                            {"factor", 40.0},
                            {"beta_fast", 32.0},
                            {"beta_slow", 1.0},
                            {"mscale", 1.0},
                            {"mscale_all_dim", 1.0},
                            {"original_max_position_embeddings", 4096}};
  for (const auto& [key, size] : {std::pair("q_lora_rank", 1536),
                                  {"kv_lora_rank", 512},
                                  {"qk_nope_head_dim", 128},
                                  {"qk_rope_head_dim", 64},
                                  {"v_head_dim", 128},
                                  {"moe_intermediate_size", 2048},
                                  {"n_routed_experts", 256},
                                  {"n_shared_experts", 1},
                                  {"num_experts_per_tok", 8},
                                  {"n_group", 8},
                                  {"topk_group", 4},
                                  {"first_k_dense_replace", 3}})
    config[key] = size;
  config["routed_scaling_factor"] = 2.5;
  return config;
}

// Experts in every second layer.
json switchBase(int64_t experts) {
  json config = t5(12, 768, 64, 3072, 12);
  config["model_type"] = "switch_transformers";
  config["num_decoder_layers"] = 12;
  config["num_experts"] = experts;
  config["expert_capacity"] = 64;
  config["num_sparse_encoder_layers"] = 6;
  config["num_sparse_decoder_layers"] = 6;
  return config;
}

json tied(json config) {
  config["tie_word_embeddings"] = true;
  return config;
}

struct Family {
  const char* name;
  json config;
};

const std::vector<Family>& table() {
  static const std::vector<Family> families = {
      {"gpt2", gpt2(12, 768, 12)},
      {"gpt2-medium", gpt2(24, 1024, 16)},
      {"gpt2-large", gpt2(36, 1280, 20)},
      {"gpt2-xl", gpt2(48, 1600, 25)},
      {"bert-base", bert(12, 768, 12)},
      {"bert-large", bert(24, 1024, 16)},
      {"minilm-l6", bert(6, 384, 12)},
      {"vit-ti-16", vit(12, 192, 768, 3, 16)},
      {"vit-s-16", vit(12, 384, 1536, 6, 16)},
      {"vit-s-32", vit(12, 384, 1536, 6, 32)},
      {"vit-b-16", vit(12, 768, 3072, 12, 16)},
      {"vit-b-32", vit(12, 768, 3072, 12, 32)},
      {"vit-l-14", vit(24, 1024, 4096, 16, 14)},
      {"vit-l-16", vit(24, 1024, 4096, 16, 16)},
      {"vit-l-32", vit(24, 1024, 4096, 16, 32)},
      {"vit-h-14", vit(32, 1280, 5120, 16, 14)},
      {"vit-g-14", vit(40, 1408, 6144, 16, 14)},
      {"vit-G-14", vit(48, 1664, 8192, 16, 14)},
      {"vmoe-s-32", vmoe(vit(8, 512, 2048, 8, 32), 4)},
      {"vmoe-s-32-last2", vmoe(vit(8, 512, 2048, 8, 32), 2)},
      {"vmoe-b-32", vmoe(vit(12, 768, 3072, 12, 32), 6)},
      {"vmoe-b-32-last2", vmoe(vit(12, 768, 3072, 12, 32), 2)},
      {"vmoe-b-16", vmoe(vit(12, 768, 3072, 12, 16), 6)},
      {"vmoe-b-16-last2", vmoe(vit(12, 768, 3072, 12, 16), 2)},
      {"vmoe-l-32", vmoe(vit(24, 1024, 4096, 16, 32), 12)},
      {"vmoe-l-32-last2", vmoe(vit(24, 1024, 4096, 16, 32), 2)},
      {"vmoe-l-16", vmoe(vit(24, 1024, 4096, 16, 16), 12)},
      {"vmoe-l-16-last2", vmoe(vit(24, 1024, 4096, 16, 16), 2)},
      {"vmoe-h-14", vmoe(vit(32, 1280, 5120, 16, 14), 16)},
      {"vmoe-h-14-last5", vmoe(vit(32, 1280, 5120, 16, 14), 5)},
      {"t5-small", t5(6, 512, 64, 2048, 8)},
      {"t5-base", t5(12, 768, 64, 3072, 12)},
      {"t5-large", t5(24, 1024, 64, 4096, 16)},
      {"t5-3b", t5(24, 1024, 128, 16384, 32)},
      {"t5-11b", t5(24, 1024, 128, 65536, 128)},
      {"llama-2-7b", llama(32, 4096, 11008, 32, 32)},
      {"llama-2-13b", llama(40, 5120, 13824, 40, 40)},
      {"llama-2-70b", llama(80, 8192, 28672, 64, 8)},
      {"llama-3.1-8b", llama3(32, 4096, 14336, 32, 8.0)},
      {"llama-3.1-70b", llama3(80, 8192, 28672, 64, 8.0)},
      {"llama-3.1-405b", llama3(126, 16384, 53248, 128, 8.0)},
      {"llama-3.2-1b", tied(llama3(16, 2048, 8192, 32, 32.0))},
      {"mixtral-8x7b", mixtral(32, 4096, 14336, 32, 32768)},
      {"mixtral-8x22b", mixtral(56, 6144, 16384, 48, 65536)},
      {"qwen3-30b-a3b", qwen3Moe(48, 2048, 768, 32)},
      {"qwen3-235b-a22b", qwen3Moe(94, 4096, 1536, 64)},
      {"deepseek-v3", deepseekV3()},
      {"switch-base-8", switchBase(8)},
      {"switch-base-32", switchBase(32)},
      {"switch-base-128", switchBase(128)},
  };
  return families;
}

}  // namespace

json familyConfig(const std::string& name) {
  // Papers write "vit-b/16".
  std::string plain = name;
  std::replace(plain.begin(), plain.end(), '/', '-');
  for (const Family& family : table())
    if (plain == family.name) return family.config;
  return coatnetConfig(plain);
}

std::vector<std::string> familyNames() {
  std::vector<std::string> names;
  for (const Family& family : table()) names.push_back(family.name);
  const std::vector<std::string> coatnets = coatnetNames();
  names.insert(names.end(), coatnets.begin(), coatnets.end());
  return names;
}

bool isFamily(const std::string& name) { return !familyConfig(name).is_null(); }

}  // namespace partita::huggingface
