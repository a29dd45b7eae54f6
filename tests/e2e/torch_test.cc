// Compiles .pt2 models, runs and trains them, and compares with PyTorch.
#include <algorithm>

#include "compiler/driver/import_model.h"
#include "gtest/gtest.h"
#include "tests/e2e/compiled_model.h"
#include "tests/e2e/golden.h"
#include "tests/e2e/training_case.h"

namespace partita::e2e {
namespace {

constexpr char kData[] = "torch-tiny";

struct Model {
  const char* name;
  // The file for training. Only batch norms need another one than for
  // inference, since the models drop nothing.
  const char* trained = "model_eval.pt2";
};
constexpr Model kModels[] = {{"bert"},      {"coatnet", "model_train.pt2"},
                             {"gpt2"},      {"llama"},
                             {"mixtral"},   {"qwen3"},
                             {"qwen3_moe"}, {"swinv2"},
                             {"t5"},        {"vit"}};

class TorchTest : public testing::TestWithParam<Model> {};

TEST_P(TorchTest, InferenceEqualsPyTorch) {
  const std::string folder =
      std::string("tests/data/") + kData + "/" + GetParam().name + "/";
  auto inputs = ReadTensors(folder + "io.safetensors", "in.");
  auto expected = ReadTensors(folder + "io.safetensors", "out.eval.");
  ASSERT_TRUE(inputs.ok()) << inputs.status();
  ASSERT_TRUE(expected.ok()) << expected.status();
  driver::ImportOptions options;
  for (const auto& [name, tensor] : *inputs) {
    options.dims["batch"] = tensor.shape[0];
    if (name == "input_ids") options.dims["seq"] = tensor.shape[1];
    if (name == "decoder_input_ids")
      options.dims["decoder_seq"] = tensor.shape[1];
  }
  CompilerContext context;
  auto module =
      driver::importModel(folder + "model_eval.pt2", options, context.get());
  ASSERT_TRUE(module) << context.errors;
  auto compiled =
      CompiledModel::Make(*module, testing::TempDir(), GetParam().name, 2);
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  auto outputs = (*compiled)->Run(*inputs);
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  const Distance distance =
      Compare(outputs->front(), expected->at("y"), 1e-4, 1e-5);
  EXPECT_TRUE(distance.within) << "largest difference " << distance.largest
                               << " of " << distance.largest_expected;
}

TEST_P(TorchTest, TrainingEqualsPyTorch) {
  TrainingCase which;
  which.model = GetParam().name;
  which.data = kData;
  which.file = GetParam().trained;
  TrainingRun run;
  const absl::Status started = run.Start(which);
  ASSERT_TRUE(started.ok()) << started;
  run.ExpectEqualsPyTorch();
}

INSTANTIATE_TEST_SUITE_P(Models, TorchTest, testing::ValuesIn(kModels),
                         [](const auto& info) {
                           return std::string(info.param.name);
                         });

}  // namespace
}  // namespace partita::e2e
