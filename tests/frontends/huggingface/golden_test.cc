// The folders of tests/data/onnx-tiny, imported and interpreted, against what
// PyTorch computed.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

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
};

class Golden : public testing::TestWithParam<Model> {};

TEST_P(Golden, ComputesWhatPyTorchComputed) {
  const std::string folder =
      std::string("tests/data/onnx-tiny/") + GetParam().name;
  Runner runner;
  HfOptions options;
  options.dims = GetParam().dims;
  mlir::OwningOpRef<mlir::ModuleOp> module =
      importHuggingFace(folder, options, runner.context());
  ASSERT_TRUE(module) << runner.diagnostics();
  EXPECT_EQ(runner.diagnostics(), "");

  auto io = base::SafetensorsFile::Open(folder + "/io.safetensors");
  ASSERT_TRUE(io.ok()) << io.status().message();
  const auto results = runner.run(*module, [&](const std::string& name) {
    return readTensor(*io, "in." + name, runner.context());
  });
  ASSERT_EQ(results.size(), 1u) << runner.diagnostics();
  const nn::Tensor expected = readTensor(*io, "out.eval.y", runner.context());
  ASSERT_EQ(results[0].type(), expected.type());
  for (int64_t i = 0; i < expected.size(); ++i)
    ASSERT_NEAR(results[0].getFloat(i), expected.getFloat(i),
                1e-5 + 1e-4 * std::abs(expected.getFloat(i)))
        << "element " << i;
}

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

}  // namespace
}  // namespace partita::huggingface
