// The eight golden models from all three sources: evaluation ONNX, training
// ONNX, and Hugging Face folder or family configuration.
#include "tests/e2e/golden.h"

#include <cstdlib>

#include "compiler/driver/import_model.h"
#include "gtest/gtest.h"
#include "tests/e2e/compiled_model.h"

namespace partita::e2e {
namespace {

constexpr char kData[] = "tests/data/onnx-tiny/";

struct Door {
  const char* name;
  const char* file;  // relative to the model's folder; "" is the folder itself
  const char* expected;  // name of the golden output
};
constexpr Door kDoors[] = {{"EvalOnnx", "model_eval.onnx", "eval.y"},
                           {"TrainOnnx", "model_train.onnx", "train.y"},
                           {"Folder", "", "eval.y"}};
constexpr const char* kModels[] = {"bert_mlm",     "coatnet_64", "gpt2",
                                   "coatnet_bias", "gpt2_4l",    "t5",
                                   "vit",          "vit_3l"};

class GoldenTest
    : public testing::TestWithParam<std::tuple<const char*, Door>> {};

TEST_P(GoldenTest, EqualsPyTorch) {
  const auto& [model, door] = GetParam();
  const std::string folder = std::string(kData) + model + "/";
  auto inputs = ReadTensors(folder + "io.safetensors", "in.");
  auto expected = ReadTensors(folder + "io.safetensors", "out.");
  ASSERT_TRUE(inputs.ok()) << inputs.status();
  ASSERT_TRUE(expected.ok()) << expected.status();

  driver::ImportOptions options;
  for (const auto& [name, tensor] : *inputs) {
    // A family's sizes follow from its dimensions alone.
    if (door.file[0] != '\0') options.input_shapes[name] = tensor.shape;
    options.dims["batch"] = tensor.shape[0];
    if (name == "input_ids") options.dims["seq"] = tensor.shape[1];
    if (name == "decoder_input_ids" && door.file[0] == '\0')
      options.dims["decoder_seq"] = tensor.shape[1];
  }
  CompilerContext context;
  auto module = driver::importModel(folder + door.file, options, context.get());
  ASSERT_TRUE(module) << context.errors;
  auto compiled = CompiledModel::Make(*module, testing::TempDir(),
                                      std::string(model) + door.name, 2);
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  auto outputs = (*compiled)->Run(*inputs);
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  Distance distance =
      Compare(outputs->front(), (*expected)[door.expected], 1e-4, 1e-5);
  EXPECT_TRUE(distance.within) << "largest difference " << distance.largest
                               << " of " << distance.largest_expected;
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenTest,
                         testing::Combine(testing::ValuesIn(kModels),
                                          testing::ValuesIn(kDoors)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param)) +
                                  std::get<1>(info.param).name;
                         });

}  // namespace
}  // namespace partita::e2e
