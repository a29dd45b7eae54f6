// Keys that a config lacks have the values of transformers 5.23, for decoders
// and models with experts.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "frontends/huggingface/huggingface.h"
#include "llvm/Support/raw_ostream.h"
#include "mlir/IR/BuiltinOps.h"
#include "tests/frontends/huggingface/run.h"

namespace partita::huggingface {
namespace {

using nlohmann::json;

constexpr char kMistral[] = "tests/frontends/huggingface/golden/mistral";
constexpr char kMixtral[] = "tests/data/experts-tiny/mixtral";
constexpr char kQwen[] = "tests/data/experts-tiny/qwen3_moe";
constexpr char kDeepseek[] = "tests/data/experts-tiny/deepseek_v3";
constexpr char kSwitch[] = "tests/data/experts-tiny/switch_transformers";

// The module that a config gives with seeded weights.
std::string imported(const json& config) {
  Runner runner;
  HfOptions options;
  options.dims = {{"seq", 10}};
  const mlir::OwningOpRef<mlir::ModuleOp> module =
      importConfig(config.dump(), "config", options, runner.context());
  EXPECT_TRUE(module) << runner.diagnostics();
  if (!module) return "";
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.get()->print(stream);
  return text;
}

struct Default {
  const char* folder;
  json change;  // to the folder's config
  std::string key;
  json value, other;  // the default, and another one that makes a difference
};

std::string nameOf(const testing::TestParamInfo<Default>& info) {
  return info.param.key;
}

class Defaults : public testing::TestWithParam<Default> {};

TEST_P(Defaults, AreThoseOfTransformers) {
  const Default& given = GetParam();
  std::ifstream file(std::string(given.folder) + "/config.json");
  json config = json::parse(file);
  config.update(given.change);
  config.erase(given.key);
  const std::string without = imported(config);
  config[given.key] = given.value;
  EXPECT_EQ(without, imported(config)) << given.key;
  config[given.key] = given.other;
  EXPECT_NE(without, imported(config)) << given.key;
}

// More heads than key-value heads by default.
const json kHeads = {{"num_attention_heads", 8}};
const json kGroups = {{"n_routed_experts", 16}, {"num_experts_per_tok", 4}};
const json kYarn = {
    {"rope_parameters", {{"rope_type", "yarn"}, {"factor", 4.0}}}};
const json kNone = json::object();

INSTANTIATE_TEST_SUITE_P(
    Mistral, Defaults,
    testing::Values(Default{kMistral,
                            {{"num_attention_heads", 16}},
                            "num_key_value_heads",
                            8,
                            nullptr},
                    Default{kMistral, kNone, "sliding_window", 4096, nullptr},
                    Default{kMistral, kNone, "rms_norm_eps", 1e-6, 1e-5}),
    nameOf);

INSTANTIATE_TEST_SUITE_P(
    Mixtral, Defaults,
    testing::Values(Default{kMixtral,
                            {{"num_attention_heads", 16}, {"head_dim", 8}},
                            "num_key_value_heads",
                            8,
                            nullptr},
                    Default{kMixtral, kNone, "rms_norm_eps", 1e-5, 1e-6},
                    Default{kMixtral, kNone, "num_experts_per_tok", 2, 1},
                    Default{kMixtral, kNone, "sliding_window", nullptr, 4},
                    Default{kMixtral,
                            kNone,
                            "rope_parameters",
                            {{"rope_theta", 1e6}},
                            {{"rope_theta", 1e4}}}),
    nameOf);

INSTANTIATE_TEST_SUITE_P(
    Qwen3Moe, Defaults,
    testing::Values(Default{kQwen, kHeads, "num_key_value_heads", 4, nullptr},
                    Default{kQwen, kNone, "rms_norm_eps", 1e-6, 1e-5},
                    Default{kQwen, kNone, "num_experts_per_tok", 8, 2},
                    Default{kQwen, kNone, "norm_topk_prob", false, true},
                    Default{kQwen, kNone, "decoder_sparse_step", 1, 2},
                    Default{kQwen,
                            {{"use_sliding_window", true}},
                            "sliding_window",
                            4096,
                            nullptr},
                    Default{kQwen,
                            kNone,
                            "rope_parameters",
                            {{"rope_theta", 1e4}},
                            {{"rope_theta", 1e6}}}),
    nameOf);

INSTANTIATE_TEST_SUITE_P(
    DeepseekV3, Defaults,
    testing::Values(
        Default{kDeepseek, kGroups, "n_group", 8, 4},
        Default{kDeepseek, kNone, "topk_group", 4, 2},
        Default{
            kDeepseek, {{"n_routed_experts", 16}}, "num_experts_per_tok", 8, 3},
        Default{kDeepseek, kNone, "norm_topk_prob", true, nullptr},
        Default{kDeepseek, kNone, "routed_scaling_factor", 2.5, 1.0},
        Default{kDeepseek, kNone, "first_k_dense_replace", 3, 1},
        Default{kDeepseek, kNone, "n_shared_experts", 1, 2},
        Default{kDeepseek, kNone, "q_lora_rank", 1536, nullptr},
        Default{kDeepseek, kNone, "rope_interleave", true, nullptr},
        Default{kDeepseek, kNone, "rms_norm_eps", 1e-6, 1e-5},
        Default{kDeepseek, kYarn, "max_position_embeddings", 4096, 128}),
    nameOf);

INSTANTIATE_TEST_SUITE_P(
    SwitchTransformers, Defaults,
    testing::Values(
        Default{kSwitch, kNone, "num_decoder_layers", 12, nullptr},
        Default{kSwitch, kNone, "num_experts", 8, 4},
        Default{kSwitch, kNone, "expert_capacity", 64, 4},
        Default{
            kSwitch, {{"num_layers", 6}}, "num_sparse_encoder_layers", 3, 1},
        Default{kSwitch,
                {{"num_decoder_layers", 6}},
                "num_sparse_decoder_layers",
                3,
                1}),
    nameOf);

}  // namespace
}  // namespace partita::huggingface
