// Configs with each value replaced by odd ones. Every import must end with a
// module or a diagnostic.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "frontends/huggingface/huggingface.h"
#include "tests/frontends/huggingface/run.h"

namespace partita::huggingface {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class Damage : public testing::TestWithParam<const char*> {
 protected:
  Damage()
      : source_(GetParam()),
        folder_(fs::path(getenv("TEST_TMPDIR")) / source_.filename()) {
    fs::create_directories(folder_);
    std::ifstream file(source_ / "config.json");
    config_ = json::parse(file);
  }
  ~Damage() override { fs::remove_all(folder_); }

  // Uses weights from a seed, so that the model builder runs for any sizes.
  void import(const std::string& text) {
    std::ofstream(folder_ / "config.json") << text;
    Runner runner;
    HfOptions options;
    options.with_weights = false;
    const bool module = static_cast<bool>(
        importHuggingFace(folder_.string(), options, runner.context()));
    EXPECT_EQ(module, runner.diagnostics().empty()) << text << "\n"
                                                    << runner.diagnostics();
  }

  // Replaces each value of `config_` at or below `place` in turn.
  void damageEach(json& place) {
    static const json kOdd[] = {
        nullptr,       false,         -1,    0,          1,   3,   7,
        10000,         2147483647,    1e300, 4294967296, 0.5, "x", "mlp 9e9",
        json::array(), json::object()};
    for (auto& value : place) {
      const json kept = value;
      for (const json& odd : kOdd) {
        value = odd;
        import(config_.dump());
      }
      value = kept;
      if (value.is_structured() && value.size() < 30) damageEach(value);
    }
  }

  fs::path source_, folder_;
  json config_;
};

TEST_P(Damage, OfValues) {
  // Keys that no model reads.
  for (const char* key : {"id2label", "label2id"}) config_.erase(key);
  damageEach(config_);
}

TEST_P(Damage, OfText) {
  const std::string text = config_.dump();
  for (size_t size = 0; size < text.size(); size += 5)
    import(text.substr(0, size));
  for (size_t i = 0; i < text.size(); i += 3) {
    std::string bad = text;
    bad[i] = static_cast<char>(bad[i] ^ (1 << (i % 8)));
    import(bad);
  }
}

TEST_P(Damage, OfNesting) {
  import(std::string(100000, '['));
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "{\"a\":";
  import(deep);
}

INSTANTIATE_TEST_SUITE_P(
    Configs, Damage,
    testing::Values("tests/data/onnx-tiny/gpt2",
                    "tests/data/onnx-tiny/bert_mlm", "tests/data/onnx-tiny/vit",
                    "tests/data/onnx-tiny/t5",
                    "tests/data/experts-tiny/qwen3_moe",
                    "tests/data/experts-tiny/deepseek_v3",
                    "tests/data/experts-tiny/switch_transformers",
                    "tests/frontends/huggingface/golden/llama",
                    "tests/frontends/huggingface/golden/coatnet_rmlp"));

}  // namespace
}  // namespace partita::huggingface
