// cuDNN has an execution plan for every convolution of the CoAtNets, forward
// and backward, on an A100 and an H100. It plans without a GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "compiler/driver/import_model.h"
#include "runtime/cuda/conv_graph.h"
#include "runtime/cuda/dnn.h"
#include "runtime/cuda/dnn_plans.h"
#include "runtime/executor/library_desc.h"
#include "runtime/program/artifact.h"
#include "tests/e2e/compiled_model.h"
#include "tests/e2e/golden.h"
#include "tests/e2e/known_gpus.h"

namespace partita::e2e {
namespace {

struct Case {
  const char* name;
  const char* model;
  std::map<std::string, int64_t> dims;  // empty: as in the file io.safetensors
  bool trains;
  plan::Precision precision;
};

class ConvPlansTest : public testing::TestWithParam<Case> {
 protected:
  // Different convolutions of the compiled model.
  std::map<std::string, device::ConvDesc> Convolutions() {
    std::map<std::string, device::ConvDesc> found;
    const Case& which = GetParam();
    driver::ImportOptions import;
    if (which.dims.empty()) {
      const std::string folder(which.model, std::strrchr(which.model, '/') + 1);
      auto inputs = ReadTensors(folder + "io.safetensors", "in.");
      if (!inputs.ok()) return found;
      for (const auto& [name, tensor] : *inputs)
        import.input_shapes[name] = tensor.shape;
    } else {
      import.dims = which.dims;
      import.training = which.trains;
    }
    auto module = driver::importModel(which.model, import, context_.get());
    if (!module) return found;
    driver::CompileOptions options;
    options.output = testing::TempDir() + which.name + ".partita";
    options.target = "cuda:sm_80";
    options.cubins.emplace();
    if (which.trains) options.train.optimizer = "adamw";
    options.precision = which.precision;
    if (mlir::failed(driver::compileToFile(*module, options))) return found;
    auto artifact = program::Artifact::Open(options.output);
    if (!artifact.ok()) return found;
    for (const auto* function : *artifact->program().functions())
      for (const auto* instruction : *function->body())
        if (const auto* conv = instruction->operation_as_Conv()) {
          const device::ConvDesc desc = executor::ToDesc(*conv);
          found[executor::KeyOf(desc)] = desc;
        }
    return found;
  }

  CompilerContext context_;
};

TEST_P(ConvPlansTest, EveryConvolutionHasOne) {
  const auto dnn = cuda::Dnn::OpenWithoutGpu("");
  if (!dnn.ok())
    GTEST_SKIP() << "no cuDNN: plans of convolutions are not looked for";
  if ((*dnn)->Version() < kFirstVersionThatPlans)
    GTEST_SKIP() << "cuDNN before 9.11 does not plan without a GPU: plans of "
                    "convolutions are not looked for";
  const auto convolutions = Convolutions();
  ASSERT_FALSE(convolutions.empty()) << context_.errors;
  for (const Gpu& card : {kA100, kH100}) {
    const char* const name = card.name;
    const auto gpu = cuda::DescribeGpu(**dnn, JsonOf(card));
    ASSERT_TRUE(gpu.ok()) << gpu.status();
    int64_t most = 0;
    int fallbacks = 0;
    for (const auto& [key, desc] : convolutions) {
      const auto graph = cuda::ConvGraph::Make(
          **dnn, cuda::AtLeastTwoSpatial(desc), gpu->get());
      ASSERT_TRUE(graph.ok()) << key << ": " << graph.status();
      const auto plans = (*graph)->Plans();
      EXPECT_TRUE(plans.ok()) << name << ", " << key << ": " << plans.status();
      if (!plans.ok()) continue;
      most = std::max(most, plans->front().workspace_bytes);
      fallbacks += plans->front().name.find("mode2") == 0;
    }
    std::printf(
        "%s, %s: %zu convolutions, %d by a fallback; workspace of the "
        "preferred plans at most %.1f MiB\n",
        GetParam().name, name, convolutions.size(), fallbacks,
        static_cast<double>(most) / (1 << 20));
  }
}

INSTANTIATE_TEST_SUITE_P(
    CoAtNets, ConvPlansTest,
    testing::Values(Case{"golden_inference_f32",
                         "tests/data/onnx-tiny/coatnet_64/model_eval.onnx",
                         {},
                         false,
                         plan::Precision::kF32},
                    Case{"golden_training_f32",
                         "tests/data/onnx-tiny/coatnet_64/model_train.onnx",
                         {},
                         true,
                         plan::Precision::kF32},
                    Case{"golden_training_bf16",
                         "tests/data/onnx-tiny/coatnet_64/model_train.onnx",
                         {},
                         true,
                         plan::Precision::kBF16},
                    Case{"golden_training_f16",
                         "tests/data/onnx-tiny/coatnet_64/model_train.onnx",
                         {},
                         true,
                         plan::Precision::kF16},
                    Case{"coatnet_0_inference_bf16",
                         "coatnet-0",
                         {{"batch", 64}},
                         false,
                         plan::Precision::kBF16},
                    Case{"coatnet_0_training_bf16",
                         "coatnet-0",
                         {{"batch", 64}},
                         true,
                         plan::Precision::kBF16},
                    Case{"coatnet_0_training_f32",
                         "coatnet-0",
                         {{"batch", 64}},
                         true,
                         plan::Precision::kF32}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace partita::e2e
