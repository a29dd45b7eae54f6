// One model by three doors, a Hugging Face folder, a .pt2 file and an ONNX file
// of PyTorch's default exporter: the same work, memory and results.
#include "compiler/driver/import_model.h"
#include "gtest/gtest.h"
#include "tests/e2e/compiled_model.h"
#include "tests/e2e/golden.h"

namespace partita::e2e {
namespace {

const std::string kFolder = "tests/data/torch-tiny/gpt2/";

std::unique_ptr<CompiledModel> Compile(const std::string& door, bool trains,
                                       CompilerContext& context) {
  driver::ImportOptions options;
  options.dims = {{"batch", 3}, {"seq", 5}};
  auto module = driver::importModel(kFolder + door, options, context.get());
  EXPECT_TRUE(module) << door << ": " << context.errors;
  if (!module) return nullptr;
  const std::string name = trains ? "trained" : "inferred";
  auto compiled =
      trains ? CompiledModel::MakeTraining(*module, testing::TempDir(), name,
                                           std::nullopt, {})
             : CompiledModel::Make(*module, testing::TempDir(), name, 1);
  EXPECT_TRUE(compiled.ok()) << door << ": " << compiled.status();
  return compiled.ok() ? std::move(*compiled) : nullptr;
}

class DoorsTest : public testing::TestWithParam<std::string> {};

TEST_P(DoorsTest, ComputesAsPyTorch) {
  CompilerContext context;
  auto model = Compile(GetParam(), /*trains=*/false, context);
  ASSERT_TRUE(model);
  auto inputs = ReadTensors(kFolder + "io.safetensors", "in.");
  auto expected = ReadTensors(kFolder + "io.safetensors", "out.eval.");
  ASSERT_TRUE(inputs.ok()) << inputs.status();
  ASSERT_TRUE(expected.ok()) << expected.status();
  auto outputs = model->Run(*inputs);
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_TRUE(Compare(outputs->front(), expected->at("y"), 1e-4, 1e-5).within);
}

TEST_P(DoorsTest, DoesTheSameWorkAsTheFolder) {
  for (bool trains : {false, true}) {
    CompilerContext folder_context, context;
    auto folder = Compile("folder", trains, folder_context),
         model = Compile(GetParam(), trains, context);
    ASSERT_TRUE(folder && model);
    const driver::CompileReport &expected = folder->report(),
                                &found = model->report();
    // ONNX counts negative token ids from the end, in a kernel of its own.
    const bool is_onnx = GetParam() == "model.onnx";
    EXPECT_EQ(found.parameters, expected.parameters);
    EXPECT_EQ(found.parameter_elements, expected.parameter_elements);
    EXPECT_EQ(found.gemms, expected.gemms);
    EXPECT_EQ(found.launches, expected.launches + (is_onnx ? 1 : 0));
    EXPECT_EQ(found.arena_bytes, expected.arena_bytes);
    EXPECT_EQ(found.derived_bytes, expected.derived_bytes);
    if (is_onnx && trains) continue;
    EXPECT_EQ(found.layer_kinds, expected.layer_kinds);
    EXPECT_EQ(found.layer_calls, expected.layer_calls);
  }
}

INSTANTIATE_TEST_SUITE_P(Doors, DoorsTest,
                         testing::Values("folder", "model_eval.pt2",
                                         "model.onnx"),
                         [](const auto& info) {
                           return info.param.substr(info.param.rfind('.') + 1);
                         });

}  // namespace
}  // namespace partita::e2e
