// Other people's models through the passes of compiler/sharding: the same
// numbers after each pass.
#include <gtest/gtest.h>

#include <map>

#include "compiler/driver/import_model.h"
#include "compiler/sharding/passes.h"
#include "compiler/simplify/pipeline.h"
#include "dialects/nn/dialect.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "tests/compiler/simplify/evaluate.h"

namespace partita::sharding {
namespace {

using mlir::func::FuncOp;

struct Model {
  const char* path;
  std::map<std::string, int64_t> dims;
  bool has_packed;  // query, key and value in one parameter
};

std::vector<Model> models() {
  const std::map<std::string, int64_t> images = {{"batch", 2}},
                                       text = {{"batch", 2}, {"seq", 6}};
  const std::string onnx = "tests/data/onnx-tiny/";
  return {
      {"tests/data/onnx-tiny/bert_mlm/model_eval.onnx", text, false},
      {"tests/data/onnx-tiny/coatnet_64/model_eval.onnx", images, false},
      {"tests/data/onnx-tiny/coatnet_bias/model_eval.onnx", images, true},
      {"tests/data/onnx-tiny/gpt2/model_eval.onnx", text, true},
      {"tests/data/onnx-tiny/gpt2_4l/model_eval.onnx", text, true},
      {"tests/data/onnx-tiny/t5/model_eval.onnx",
       {{"batch", 2}, {"seq", 6}, {"dec", 5}},
       false},
      {"tests/data/onnx-tiny/vit/model_eval.onnx", images, false},
      {"tests/data/onnx-tiny/vit_3l/model_eval.onnx", images, false},
      {"tests/data/onnx-tiny/gpt2", text, true},
      {"tests/frontends/huggingface/golden/llama", text, false},
      {"tests/frontends/huggingface/golden/t5_gated", text, false},
      {"tests/frontends/huggingface/golden/bert_types", text, false},
      {"tests/frontends/huggingface/golden/coatnet_paper", images, false},
      {"tests/frontends/huggingface/golden/coatnet_rmlp", images, false},
      {"tests/frontends/huggingface/golden/coatnet_bn", images, false},
  };
}

// Token numbers stay below every vocabulary, masks are 0 or 1.
nn::Tensor input(const std::string& name, mlir::RankedTensorType type) {
  nn::Tensor tensor = simplify::madeUp(type, name.size());
  for (int64_t i = 0; !tensor.isFloat() && i < tensor.size(); ++i) {
    const bool mask = name == "attention_mask";
    tensor.setInt(i, mask ? i % 3 != 2 : (tensor.getInt(i) * 37 + i) % 50);
  }
  return tensor;
}

class ShardingModelsTest : public testing::TestWithParam<Model> {};

TEST_P(ShardingModelsTest, ComputesTheSame) {
  mlir::MLIRContext context(simplify::testRegistry(),
                            mlir::MLIRContext::Threading::DISABLED);
  driver::ImportOptions options;
  options.dims = GetParam().dims;
  auto module = driver::importModel(GetParam().path, options, &context);
  ASSERT_TRUE(module);
  mlir::PassManager simplify_passes(&context), passes(&context);
  simplify::SimplifyOptions simplify;
  simplify.training = true;  // parameters stay arguments of @main
  simplify::buildSimplifyPipeline(simplify_passes, simplify);
  ASSERT_TRUE(succeeded(simplify_passes.run(*module)));
  const std::vector<nn::Tensor> expected = simplify::runMain(*module, input);

  passes.addPass(createExposeFactorsPass());
  ASSERT_TRUE(succeeded(passes.run(*module)));
  simplify::expectSame(simplify::runMain(*module, input), expected,
                       "after exposing factors");
  bool has_packed = false;
  auto main = module->lookupSymbol<FuncOp>("main");
  for (mlir::Type type : main.getArgumentTypes())
    has_packed |= llvm::is_contained(
                      mlir::cast<mlir::RankedTensorType>(type).getShape(), 3) &&
                  mlir::cast<mlir::RankedTensorType>(type).getRank() < 4;
  EXPECT_EQ(has_packed, GetParam().has_packed);
}

INSTANTIATE_TEST_SUITE_P(Models, ShardingModelsTest,
                         testing::ValuesIn(models()), [](const auto& info) {
                           std::string name = info.param.path;
                           name = name.substr(name.find('/', 14) + 1);
                           for (char& c : name)
                             if (!isalnum(c)) c = '_';
                           return name;
                         });

}  // namespace
}  // namespace partita::sharding
