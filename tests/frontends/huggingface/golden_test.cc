// Imports folders, interprets them, and compares with PyTorch: the folders of
// tests/data/onnx-tiny and experts-tiny, and those made by make_golden.py for
// variants that these lack.
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "dialects/nn/dialect.h"
#include "dialects/nn/interpreter.h"
#include "frontends/huggingface/huggingface.h"
#include "mlir/IR/MLIRContext.h"
#include "tests/frontends/huggingface/run.h"

namespace partita::huggingface {
namespace {

struct Model {
  const char* name;
  std::map<std::string, int64_t> dims;
  std::optional<std::vector<std::string>> optional_inputs;
};

constexpr char kOnnxTiny[] = "tests/data/onnx-tiny/";
constexpr char kExperts[] = "tests/data/experts-tiny/";
constexpr char kOurs[] = "tests/frontends/huggingface/golden/";

void expectEqual(const nn::Tensor& actual, const nn::Tensor& expected) {
  ASSERT_EQ(actual.type(), expected.type());
  for (int64_t i = 0; i < expected.size(); ++i)
    ASSERT_NEAR(actual.getFloat(i), expected.getFloat(i),
                1e-5 + 1e-4 * std::abs(expected.getFloat(i)))
        << "element " << i;
}

// Imports a folder, runs it on the inputs in its io.safetensors and compares
// result 0 with the tensor `output` of that file.
void checkFolder(const std::string& folder, const Model& model,
                 const std::string& output) {
  Runner runner;
  HfOptions options;
  options.dims = model.dims;
  options.optional_inputs = model.optional_inputs;
  mlir::OwningOpRef<mlir::ModuleOp> module =
      importHuggingFace(folder, options, runner.context());
  ASSERT_TRUE(module) << runner.diagnostics();
  EXPECT_EQ(runner.diagnostics(), "");

  auto io = base::SafetensorsFile::Open(folder + "/io.safetensors");
  ASSERT_TRUE(io.ok()) << io.status().message();
  const auto results = runner.run(*module, [&](const std::string& name) {
    return readTensor(*io, "in." + name, runner.context());
  });
  ASSERT_FALSE(results.empty()) << runner.diagnostics();
  expectEqual(results[0], readTensor(*io, output, runner.context()));
}

class Golden : public testing::TestWithParam<Model> {};

TEST_P(Golden, ComputesWhatPyTorchComputed) {
  checkFolder(std::string(kOnnxTiny) + GetParam().name, GetParam(),
              "out.eval.y");
}

class OurGolden : public testing::TestWithParam<Model> {};

TEST_P(OurGolden, ComputesWhatPyTorchComputed) {
  checkFolder(std::string(kOurs) + GetParam().name, GetParam(), "out.y");
}

class ExpertsGolden : public testing::TestWithParam<Model> {};

TEST_P(ExpertsGolden, ComputesWhatPyTorchComputed) {
  checkFolder(std::string(kExperts) + GetParam().name, GetParam(), "out.y");
}

INSTANTIATE_TEST_SUITE_P(
    Experts, ExpertsGolden,
    testing::Values(Model{"mixtral", {{"batch", 4}, {"seq", 10}}},
                    Model{"qwen3_moe", {{"batch", 4}, {"seq", 10}}},
                    Model{"deepseek_v3", {{"batch", 4}, {"seq", 10}}},
                    Model{"switch_transformers",
                          {{"batch", 4}, {"seq", 12}, {"decoder_seq", 9}}}),
    [](const testing::TestParamInfo<Model>& info) {
      return std::string(info.param.name);
    });

INSTANTIATE_TEST_SUITE_P(
    OnnxTiny, Golden,
    testing::Values(Model{"bert_mlm", {{"batch", 2}, {"seq", 12}}},
                    Model{"coatnet_64", {{"batch", 8}}},
                    Model{"coatnet_bias", {{"batch", 4}}},
                    Model{"gpt2", {{"batch", 2}, {"seq", 12}}},
                    Model{"gpt2_4l", {{"batch", 8}, {"seq", 12}}},
                    Model{"t5",
                          {{"batch", 2}, {"seq", 12}, {"decoder_seq", 7}}},
                    Model{"vit", {{"batch", 4}}},
                    Model{"vit_3l", {{"batch", 8}}}),
    [](const testing::TestParamInfo<Model>& info) {
      return std::string(info.param.name);
    });

using Names = std::vector<std::string>;
INSTANTIATE_TEST_SUITE_P(
    Variants, OurGolden,
    testing::Values(Model{"llama", {{"batch", 2}, {"seq", 40}}},
                    Model{"mistral", {{"batch", 2}, {"seq", 30}}},
                    Model{"t5_gated",
                          {{"batch", 2}, {"seq", 30}, {"decoder_seq", 25}},
                          Names{"attention_mask"}},
                    Model{"bert_types",
                          {{"batch", 2}, {"seq", 11}},
                          Names{"attention_mask", "token_type_ids"}},
                    Model{"bert_sentence", {{"batch", 2}, {"seq", 11}}},
                    Model{"coatnet_paper", {{"batch", 2}}},
                    Model{"coatnet_rmlp", {{"batch", 2}}},
                    Model{"coatnet_bn", {{"batch", 2}}}),
    [](const testing::TestParamInfo<Model>& info) {
      return std::string(info.param.name);
    });

}  // namespace
}  // namespace partita::huggingface
