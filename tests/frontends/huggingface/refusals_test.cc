// Folders and names that cannot be imported, each with its message.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "dialects/nn/dialect.h"
#include "frontends/huggingface/huggingface.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "tests/frontends/huggingface/run.h"

namespace partita::huggingface {
namespace {

namespace fs = std::filesystem;

constexpr char kGpt2[] = "tests/data/onnx-tiny/gpt2";

// A temporary folder, initially empty.
class Refusals : public testing::Test {
 protected:
  Refusals()
      : folder_(fs::path(getenv("TEST_TMPDIR")) /
                testing::UnitTest::GetInstance()->current_test_info()->name()) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~Refusals() override { fs::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
  static nlohmann::json gpt2Config() {
    std::ifstream file(std::string(kGpt2) + "/config.json");
    return nlohmann::json::parse(file);
  }
  void copyWeights(const std::string& name) {
    fs::copy_file(std::string(kGpt2) + "/weights.safetensors", folder_ / name);
  }

  // All diagnostics, with the folder's path replaced by FOLDER.
  std::string import(HfOptions options = {}) {
    Runner runner;
    succeeded_ = static_cast<bool>(
        importHuggingFace(folder_.string(), options, runner.context()));
    std::string text = runner.diagnostics();
    for (size_t at; (at = text.find(folder_.string())) != std::string::npos;)
      text.replace(at, folder_.string().size(), "FOLDER");
    return text;
  }

  fs::path folder_;
  bool succeeded_ = false;
};

TEST_F(Refusals, NoConfig) {
  EXPECT_EQ(import(),
            "error: expected a folder with config.json, found a folder without "
            "one\n");
  fs::remove_all(folder_);
  EXPECT_EQ(import(),
            "error: expected a folder with config.json, found nothing\n");
}

TEST_F(Refusals, BadJson) {
  write("config.json", "{\n  \"model_type\": \"gpt2\",\n  \"n_layer\" 2\n}");
  Runner runner;
  std::string where;
  runner.context()->getDiagEngine().registerHandler(
      [&](mlir::Diagnostic& diagnostic) {
        llvm::raw_string_ostream(where) << diagnostic.getLocation();
        return mlir::failure();
      });
  EXPECT_FALSE(importHuggingFace(folder_.string(), {}, runner.context()));
  EXPECT_EQ(runner.diagnostics().substr(0, 28), "error: expected JSON, found ")
      << runner.diagnostics();
  EXPECT_NE(where.find("config.json\":3:13"), std::string::npos) << where;
}

TEST_F(Refusals, UnknownModel) {
  write("config.json", R"({"model_type": "mamba"})");
  EXPECT_EQ(import(),
            "error: 'model_type': expected one of gpt2, bert, vit, vmoe, t5, "
            "llama, mistral, qwen3, mixtral, qwen3_moe, deepseek_v3, "
            "switch_transformers, "
            "found 'mamba'\n");
  write("config.json", R"({"hidden_size": 3})");
  EXPECT_EQ(import(),
            "error: 'model_type': expected one of gpt2, bert, vit, vmoe, t5, "
            "llama, mistral, qwen3, mixtral, qwen3_moe, deepseek_v3, "
            "switch_transformers, "
            "found no 'model_type'\n");
  write("config.json", R"({"architecture": "resnet50"})");
  EXPECT_EQ(import().substr(0, 59),
            "error: 'architecture': expected one of coatnet-0, coatnet-1");
}

TEST_F(Refusals, AllComplaintsAboutAConfigAtOnce) {
  nlohmann::json config = gpt2Config();
  config["n_head"] = 5;
  config["n_layer"] = "two";
  config["vocab_size"] = -3;
  config["activation_function"] = "snake";
  write("config.json", config.dump());
  copyWeights("model.safetensors");
  EXPECT_EQ(import({{{"batch", 2}, {"sequence", 3}}}),
            "error: cannot use this config: 'vocab_size': expected a whole "
            "number from 1 to 2147483647, found -3; "
            "'n_layer': expected a whole number from 1 to 10000, found "
            "\"two\"; 'activation_function': expected one of "
            "gelu, gelu_new, gelu_pytorch_tanh, gelu_tanh, gelu_fast, relu, "
            "quick_gelu, silu, swish, tanh, found 'snake'; "
            "'n_embd': expected a multiple of 'n_head' (5), found 32; "
            "dimension 'sequence': expected one of batch, seq\n");
}

TEST_F(Refusals, SequenceBeyondThePositions) {
  write("config.json", gpt2Config().dump());
  copyWeights("model.safetensors");
  EXPECT_EQ(import({{{"seq", 33}}}),
            "error: cannot use this config: dimension 'seq': expected at most "
            "32 (n_positions), found 33; --dim sets it\n");
}

TEST_F(Refusals, WeightsThatDoNotFit) {
  nlohmann::json config = gpt2Config();
  config["n_layer"] = 1;
  config["n_positions"] = 48;
  config["tie_word_embeddings"] = false;
  write("config.json", config.dump());
  copyWeights("model.safetensors");
  const std::string text = import();
  EXPECT_EQ(text.substr(0, text.find("transformer.h.1.attn.c_proj")),
            "error: the weights do not fit the config: 0 missing, 1 of another "
            "shape or type, 12 unexpected\n"
            "  of another shape or type:\n"
            "    transformer.wpe.weight: expected [48,32], found [32,32]\n"
            "  unexpected:\n"
            "    transformer.h.1.attn.c_attn.bias: F32[96] in "
            "FOLDER/model.safetensors\n"
            "    transformer.h.1.attn.c_attn.weight: F32[32,96] in "
            "FOLDER/model.safetensors\n"
            "    ");
  config = gpt2Config();
  config["n_layer"] = 3;
  write("config.json", config.dump());
  EXPECT_EQ(import().substr(0, 152),
            "error: the weights do not fit the config: 12 missing, 0 of "
            "another shape or type, 0 unexpected\n"
            "  missing:\n    transformer.h.2.ln_1.weight: expected [32]");
}

TEST_F(Refusals, TruncatedWeights) {
  write("config.json", gpt2Config().dump());
  copyWeights("model.safetensors");
  fs::resize_file(folder_ / "model.safetensors", 3000);
  EXPECT_NE(import().find("FOLDER/model.safetensors: expected a header of"),
            std::string::npos);
}

TEST_F(Refusals, ShardsThatLeaveTheFolder) {
  write("config.json", gpt2Config().dump());
  for (const char* shard : {"../model.safetensors", "/etc/passwd", ""}) {
    write("model.safetensors.index.json",
          nlohmann::json{{"weight_map", {{"x", shard}}}}.dump());
    EXPECT_EQ(import(), std::string("error: expected shards named by a "
                                    "relative path without '..', found '") +
                            shard + "'\n");
  }
  write("model.safetensors.index.json",
        R"({"weight_map": {"x": "none.safetensors"}})");
  EXPECT_EQ(import(),
            "error: expected the shard 'none.safetensors' to be a file in "
            "FOLDER, found none\n");
  fs::create_directory(folder_ / "none.safetensors");
  EXPECT_EQ(import(),
            "error: expected the shard 'none.safetensors' to be a file in "
            "FOLDER, found something else\n");
  write("model.safetensors.index.json", R"({"weight_map": 3})");
  EXPECT_EQ(import(),
            "error: expected an object 'weight_map' of tensors and files, "
            "found none\n");
}

TEST_F(Refusals, TensorsThatAreNotWhereTheIndexSays) {
  write("config.json", gpt2Config().dump());
  copyWeights("a.safetensors");
  write("model.safetensors.index.json",
        R"({"weight_map": {"lm_head.bias": "a.safetensors"}})");
  EXPECT_EQ(import(),
            "error: expected tensor 'lm_head.bias' in FOLDER/a.safetensors, "
            "found it nowhere\n");
  copyWeights("b.safetensors");
  write(
      "model.safetensors.index.json",
      R"({"weight_map": {"lm_head.weight": "a.safetensors", "transformer.wte.weight": "b.safetensors"}})");
  EXPECT_NE(import().find(
                "is also in FOLDER/a.safetensors; expected each in one shard"),
            std::string::npos);
}

TEST_F(Refusals, SentencePoolingThatWeDoNotKnow) {
  fs::copy_file("tests/data/onnx-tiny/bert_mlm/config.json",
                folder_ / "config.json");
  fs::create_directory(folder_ / "1_Pooling");
  write("modules.json", R"([{"type": "sentence_transformers.models.Dense"}])");
  write("1_Pooling/config.json", R"({"pooling_mode_mean_tokens": true})");
  EXPECT_NE(import().find("error: expected modules of type Transformer, "
                          "Pooling and Normalize, found "
                          "'sentence_transformers.models.Dense'\n"),
            std::string::npos);
  write(
      "1_Pooling/config.json",
      R"({"pooling_mode_max_tokens": true, "pooling_mode_mean_tokens": true})");
  EXPECT_NE(
      import().find("'pooling_mode_max_tokens': expected false, found true"),
      std::string::npos);
}

TEST_F(Refusals, UnknownFamily) {
  Runner runner;
  EXPECT_FALSE(importFamily("gpt-5", {}, runner.context()));
  EXPECT_EQ(
      runner.diagnostics(),
      "error: expected a file, a folder, or the name of a model, as gpt2, "
      "bert-base, minilm-l6, vit-ti-16, vmoe-s-32, t5-small, llama-2-7b, "
      "mixtral-8x7b, qwen3-30b-a3b, deepseek-v3, switch-base-8, coatnet-0; "
      "found 'gpt-5'; "
      "did you mean 'gpt2'?\n");
}

TEST_F(Refusals, FamilyLikeNoOther) {
  Runner runner;
  EXPECT_FALSE(importFamily("checkpoints", {}, runner.context()));
  EXPECT_NE(runner.diagnostics().find("coatnet-0; found 'checkpoints'\n"),
            std::string::npos);
}

TEST_F(Refusals, DropoutOfAModelWithoutIt) {
  Runner runner;
  HfOptions options{.training = true, .dropout = 0.1};
  EXPECT_FALSE(importFamily("coatnet-0", options, runner.context()));
  EXPECT_NE(runner.diagnostics().find(
                "--dropout: expected 0 or none, CoAtNet has no dropout"),
            std::string::npos);
  options.dropout = 0;
  EXPECT_TRUE(importFamily("coatnet-0", options, runner.context()));
}

// The diagnostics for the config of a model with experts after `change`.
std::string importExperts(const std::string& model,
                          const nlohmann::json& change, bool training = false) {
  std::ifstream file("tests/data/experts-tiny/" + model + "/config.json");
  nlohmann::json config = nlohmann::json::parse(file);
  config.update(change);
  Runner runner;
  HfOptions options;
  options.dims = {{"seq", 10}};
  options.training = training;
  importConfig(config.dump(), "config", options, runner.context());
  return runner.diagnostics();
}

TEST_F(Refusals, Experts) {
  const std::string refused = "error: cannot use this config: ";
  EXPECT_EQ(importExperts("mixtral", {{"num_experts_per_tok", 5}}),
            refused +
                "'num_experts_per_tok': expected at most 4, the experts to "
                "choose from ('num_local_experts'), found 5\n");
  EXPECT_EQ(importExperts("qwen3_moe", {{"hidden_act", "tanh"}}),
            refused +
                "'hidden_act': expected one of relu, gelu, gelu_new, "
                "gelu_pytorch_tanh, gelu_tanh, silu, swish, found 'tanh'\n");
  EXPECT_EQ(importExperts("deepseek_v3", {{"topk_group", 5}}),
            refused +
                "'topk_group': expected at most 'n_group' (4) groups of at "
                "least two experts, found 5 of 8 experts\n");
  EXPECT_EQ(importExperts("deepseek_v3", {{"scoring_func", "softmax"}}),
            refused + "'scoring_func': expected 'sigmoid', found 'softmax'\n");
  EXPECT_EQ(importExperts("switch_transformers", {{"router_bias", true}}),
            refused + "'router_bias': expected false, found true\n");
  EXPECT_EQ(importExperts("deepseek_v3",
                          {{"rope_parameters", {{"rope_type", "yarn"}}}}),
            refused + "'rope_scaling.factor': expected a positive number\n");
}

// One complaint for each wrong value, none that only follows from another.
TEST_F(Refusals, WrongNumbersOfExpertsOnce) {
  const std::string refused = "error: cannot use this config: ";
  const auto wrong = [&](const std::string& key, const std::string& end,
                         const std::string& found) {
    return refused + "'" + key + "': expected a whole number from 1 to " + end +
           ", found " + found + "\n";
  };
  const std::string key = "num_local_experts", most = "2147483647";
  for (const nlohmann::json& value : std::vector<nlohmann::json>{0, -4, "four"})
    EXPECT_EQ(importExperts("mixtral", {{key, value}}),
              wrong(key, "10000", value.dump()));
  EXPECT_EQ(importExperts("mixtral", {{key, nullptr}}),
            wrong(key, "10000", "none"));
  EXPECT_EQ(importExperts("qwen3_moe", {{key, nullptr}}),
            wrong("num_experts", "10000", "none"));
  EXPECT_EQ(importExperts("mixtral", {{"num_experts_per_tok", 0}}),
            wrong("num_experts_per_tok", most, "0"));
  for (const std::string wrong_key : {"n_group", "topk_group"})
    EXPECT_EQ(importExperts("deepseek_v3", {{wrong_key, 0}}),
              wrong(wrong_key, most, "0"));
  EXPECT_EQ(importExperts("deepseek_v3", {{"n_routed_experts", 0}}),
            wrong("n_routed_experts", "10000", "0"));
  EXPECT_EQ(importExperts("mixtral", {{"num_attention_heads", 0}}),
            wrong("num_attention_heads", most, "0"));
  const std::string unknown = importExperts("mixtral", {{"hidden_act", "x"}});
  EXPECT_EQ(unknown.find("hidden_act"), unknown.rfind("hidden_act"));
}

TEST_F(Refusals, TrainingOfExperts) {
  const std::string refused = "error: cannot use this config: ";
  for (const char* model :
       {"mixtral", "qwen3_moe", "deepseek_v3", "switch_transformers"})
    for (const bool training : {false, true})
      EXPECT_EQ(
          importExperts(model, {{"output_router_logits", true}}, training), "");
  EXPECT_EQ(
      importExperts("switch_transformers",
                    {{"dropout_rate", 0.1}, {"router_jitter_noise", 0.01}},
                    true),
      refused +
          "'router_jitter_noise': expected 0 for training, found 0.01; "
          "noise on a router's input is not supported; "
          "'dropout_rate': expected 0 for training (--dropout 0 sets it), "
          "found 0.1; dropout within experts is not supported\n");
}

// Unusual but accepted folders.

TEST_F(Refusals, ButNotAFolderWithoutWeights) {
  write("config.json", gpt2Config().dump());
  EXPECT_EQ(import(),
            "remark: no model.safetensors, weights.safetensors or "
            "model.safetensors.index.json here: weights are made "
            "from seed 0\n");
  EXPECT_TRUE(succeeded_);
}

TEST_F(Refusals, ButNotShards) {
  write("config.json", gpt2Config().dump());
  copyWeights("model-00001-of-00001.safetensors");
  nlohmann::json map;
  const auto file = base::SafetensorsFile::Open(
      (folder_ / "model-00001-of-00001.safetensors").string());
  for (const auto& [name, entry] : file->header().tensors)
    map[name] = "model-00001-of-00001.safetensors";
  write("model.safetensors.index.json",
        nlohmann::json{{"weight_map", map}}.dump());
  EXPECT_EQ(import(), "");
  EXPECT_TRUE(succeeded_);
}

// Names with and without the base model's prefix, and with wrappers' prefixes,
// are equivalent.
TEST_F(Refusals, ButNotOtherPrefixes) {
  write("config.json", gpt2Config().dump());
  std::ifstream file(std::string(kGpt2) + "/weights.safetensors",
                     std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  uint64_t length = 0;
  for (int i = 7; i >= 0; --i)
    length = length << 8 | static_cast<unsigned char>(bytes[i]);
  const nlohmann::json header = nlohmann::json::parse(bytes.substr(8, length));
  for (const std::string prefix : {"short", "module.", "module._orig_mod."}) {
    nlohmann::json renamed;
    for (const auto& [name, entry] : header.items())
      renamed[prefix == "short" && name.rfind("transformer.", 0) == 0
                  ? name.substr(12)
              : prefix == "short" ? name
                                  : prefix + name] = entry;
    const std::string text = renamed.dump();
    std::string out;
    for (int i = 0; i < 8; ++i)
      out.push_back(static_cast<char>(text.size() >> (8 * i) & 0xff));
    write("model.safetensors", out + text + bytes.substr(8 + length));
    EXPECT_EQ(import(), "") << prefix;
    EXPECT_TRUE(succeeded_) << prefix;
  }
}

// A hundred gigabytes of weights; the importer reads only their header.
TEST_F(Refusals, ButNotAHundredGigabytes) {
  write(
      "config.json",
      R"({"model_type": "llama", "vocab_size": 2000000000, "hidden_size": 24, "intermediate_size": 8,
                           "num_hidden_layers": 1, "num_attention_heads": 2, "tie_word_embeddings": true})");
  nlohmann::json header;
  uint64_t end = 0;
  const auto tensor = [&](const std::string& name,
                          std::vector<uint64_t> shape) {
    uint64_t bytes = 2;
    for (const uint64_t size : shape) bytes *= size;
    header[name] = {{"dtype", "BF16"},
                    {"shape", shape},
                    {"data_offsets", {end, end + bytes}}};
    end += bytes;
  };
  tensor("model.embed_tokens.weight", {2000000000, 24});
  for (const char* name : {"q_proj", "k_proj", "v_proj", "o_proj"})
    tensor(std::string("model.layers.0.self_attn.") + name + ".weight",
           {24, 24});
  tensor("model.layers.0.mlp.gate_proj.weight", {8, 24});
  tensor("model.layers.0.mlp.up_proj.weight", {8, 24});
  tensor("model.layers.0.mlp.down_proj.weight", {24, 8});
  for (const char* name : {"layers.0.input_layernorm",
                           "layers.0.post_attention_layernorm", "norm"})
    tensor(std::string("model.") + name + ".weight", {24});
  const std::string text = header.dump();
  std::string out;
  for (int i = 0; i < 8; ++i)
    out.push_back(static_cast<char>(text.size() >> (8 * i) & 0xff));
  write("model.safetensors", out + text);
  const std::string path = (folder_ / "model.safetensors").string();
  if (truncate(path.c_str(), static_cast<off_t>(8 + text.size() + end)) != 0)
    GTEST_SKIP() << "this file system holds no sparse file of 96 GB";
  Runner runner;
  mlir::OwningOpRef<mlir::ModuleOp> module =
      importHuggingFace(folder_.string(), {}, runner.context());
  ASSERT_TRUE(module) << runner.diagnostics();
  auto main = module->lookupSymbol<mlir::func::FuncOp>("main");
  auto source = main.getArgAttrOfType<nn::FileAttr>(1, nn::kSourceAttr);
  EXPECT_EQ(source.getBytes(), 96000000000u);
  EXPECT_TRUE(source.getStored().isBF16());
  EXPECT_TRUE(mlir::cast<mlir::RankedTensorType>(main.getArgumentTypes()[1])
                  .getElementType()
                  .isF32());
}

}  // namespace
}  // namespace partita::huggingface
