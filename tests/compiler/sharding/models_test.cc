// Runs exported models through the passes of compiler/sharding: the numbers do
// not change, and the dimensions get the expected names.
#include <gtest/gtest.h>

#include <map>

#include "compiler/driver/import_model.h"
#include "compiler/sharding/dims.h"
#include "compiler/sharding/passes.h"
#include "compiler/simplify/pipeline.h"
#include "dialects/nn/dialect.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "tests/compiler/simplify/evaluate.h"

namespace partita::sharding {
namespace {

using mlir::func::FuncOp;

using Names = std::map<std::string, std::string>;

struct Model {
  const char* path;
  std::map<std::string, int64_t> dims;
  // Arguments of @main by name, with their dimensions.
  Names names;
};

const std::map<std::string, int64_t> kImages = {{"batch", 2}},
                                     kText = {{"batch", 2}, {"seq", 6}};

std::vector<Model> models() {
  return {
      {"tests/data/onnx-tiny/bert_mlm/model_eval.onnx",
       kText,
       {{"input_ids", "[B, L]"},
        {"attention_mask", "[B, L]"},
        {"bert.embeddings.word_embeddings.weight", "[V, E]"},
        {"bert.embeddings.position_embeddings.weight", "[32, E]"},
        {"bert.embeddings.token_type_embeddings.weight", "[2, E]"},
        {"bert.encoder.layer.1.attention.self.key.bias", "[N*8]"},
        {"bert.encoder.layer.0.intermediate.dense.bias", "[M]"},
        {"bert.encoder.layer.1.output.LayerNorm.weight", "[E]"},
        {"onnx::MatMul_325", "[E, N*8]"},
        {"onnx::MatMul_335", "[N*8, E]"},
        {"onnx::MatMul_336", "[E, M]"},
        {"onnx::MatMul_337", "[M, E]"},
        {"onnx::MatMul_351", "[E, E']"},
        {"cls.predictions.bias", "[V]"}}},
      {"tests/data/onnx-tiny/gpt2/model_eval.onnx",
       kText,
       {{"input_ids", "[B, L]"},
        {"transformer.wte.weight", "[V, E]"},
        {"transformer.wpe.weight", "[32, E]"},
        {"transformer.h.1.attn.c_attn.weight", "[E, 3, N*8]"},
        {"transformer.h.1.attn.c_attn.bias", "[3, N*8]"},
        {"transformer.h.0.attn.c_proj.weight", "[N*8, E]"},
        {"transformer.h.0.mlp.c_fc.weight", "[E, M]"},
        {"transformer.h.1.mlp.c_fc.bias", "[M]"},
        {"transformer.h.0.mlp.c_proj.weight", "[M, E]"},
        {"transformer.ln_f.weight", "[E]"},
        {"onnx::MatMul_626", "[E, V]"}}},
      {"tests/data/onnx-tiny/gpt2_4l/model_eval.onnx",
       kText,
       {{"transformer.wte.weight", "[V, E]"},
        {"transformer.h.3.attn.c_attn.weight", "[E, 3, N*8]"},
        {"transformer.h.3.mlp.c_fc.weight", "[E, M]"},
        {"transformer.h.3.mlp.c_proj.weight", "[M, E]"}}},
      {"tests/data/onnx-tiny/t5/model_eval.onnx",
       {{"batch", 2}, {"seq", 6}, {"dec", 5}},
       {{"input_ids", "[B, L]"},
        {"decoder_input_ids", "[B, L]"},
        {"shared.weight", "[V, E]"},
        {"encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight",
         "[32, N]"},
        {"onnx::MatMul_773", "[E, N*8]"},
        {"onnx::MatMul_787", "[N*8, E]"},
        {"onnx::MatMul_788", "[E, M]"},
        {"onnx::MatMul_789", "[M, E]"},
        {"onnx::MatMul_876", "[E, V]"}}},
      {"tests/data/onnx-tiny/vit/model_eval.onnx",
       kImages,
       {{"pixel_values", "[B, 3, H, W]"},
        {"vit.embeddings.patch_embeddings.projection.weight", "[E, 3, 4, 4]"},
        {"vit.embeddings.position_embeddings", "[1, L, E]"},
        {"vit.encoder.layer.1.intermediate.dense.bias", "[M]"},
        {"vit.encoder.layer.0.attention.attention.query.bias", "[N*8]"},
        {"onnx::MatMul_284", "[E, N*8]"},
        {"onnx::MatMul_295", "[E, M]"},
        {"classifier.weight", "[V, E]"}}},
      {"tests/data/onnx-tiny/vit_3l/model_eval.onnx",
       kImages,
       {{"pixel_values", "[B, 3, H, W]"},
        {"vit.encoder.layer.2.intermediate.dense.bias", "[M]"},
        {"classifier.weight", "[V, E]"}}},
      {"tests/data/onnx-tiny/coatnet_64/model_eval.onnx",
       kImages,
       {{"x", "[B, 3, H, W]"},
        {"stem.conv2.weight", "[E, M, 3, 3]"},
        {"stages.0.blocks.0.conv2_kxk.weight", "[M, 1, 3, 3]"},
        {"stages.0.blocks.0.se_early.fc1.weight", "[8, M, 1, 1]"},
        {"stages.1.blocks.1.conv3_1x1.weight", "[E, M, 1, 1]"},
        {"stages.2.blocks.0.attn.qkv.weight", "[N*24, E, 1, 1]"},
        {"stages.2.blocks.0.attn.proj.weight", "[E, N*8, 1, 1]"},
        {"onnx::Add_522", "[1, N, L=H*W, L'=H'*W']"},
        {"stages.3.blocks.0.mlp.fc1.weight", "[M, E, 1, 1]"},
        {"head.fc.weight", "[V, E]"}}},
      {"tests/data/onnx-tiny/coatnet_bias/model_eval.onnx",
       kImages,
       {{"x", "[B, 3, H, W]"},
        {"stages.0.blocks.0.conv2_kxk.weight", "[M, 1, 3, 3]"},
        {"stages.2.blocks.0.attn.qkv.weight", "[3, 32, E, 1, 1]"},
        {"stages.2.blocks.0.mlp.fc2.weight", "[E, M, 1, 1]"}}},
      {"tests/data/onnx-tiny/gpt2",
       kText,
       {{"transformer.h.0.attn.c_attn.weight", "[E, 3, N*8]"},
        {"transformer.h.0.mlp.c_fc.weight", "[E, M]"}}},
      {"tests/frontends/huggingface/golden/llama",
       kText,
       {{"model.embed_tokens.weight", "[V, E]"},
        {"model.layers.1.self_attn.q_proj.weight", "[N*8, E]"},
        {"model.layers.1.self_attn.k_proj.weight", "[N*8, E]"},
        {"model.layers.1.self_attn.o_proj.weight", "[E, N*8]"},
        {"model.layers.0.mlp.up_proj.weight", "[M, E]"},
        {"model.layers.0.mlp.down_proj.weight", "[E, M]"},
        {"lm_head.weight", "[V, E]"}}},
      {"tests/data/experts-tiny/mixtral",
       kText,
       {{"model.layers.0.block_sparse_moe.experts.*.w1.weight", "[X, M, E]"},
        {"model.layers.0.block_sparse_moe.experts.*.w2.weight", "[X, E, M]"},
        {"model.layers.1.self_attn.k_proj.weight", "[N*4, E]"},
        {"model.layers.1.block_sparse_moe.gate.weight", "[4, E]"}}},
      {"tests/data/experts-tiny/deepseek_v3",
       kText,
       {{"model.layers.1.mlp.experts.*.up_proj.weight", "[X, M, E]"},
        {"model.layers.1.mlp.shared_experts.up_proj.weight", "[M, E]"},
        {"model.layers.0.mlp.up_proj.weight", "[M, E]"}}},
      {"tests/frontends/huggingface/golden/t5_gated",
       kText,
       {{"lm_head.weight", "[V, E]"}}},
      {"tests/frontends/huggingface/golden/bert_types",
       kText,
       {{"pooler.dense.weight", "[E', E]"}}},
      {"tests/frontends/huggingface/golden/coatnet_paper",
       kImages,
       {{"stages.2.blocks.1.mlp.fc1.weight", "[M, E, 1, 1]"}}},
      {"tests/frontends/huggingface/golden/coatnet_rmlp",
       kImages,
       {{"stages.2.blocks.1.attn.qkv.weight", "[N*24, E, 1, 1]"}}},
      {"tests/frontends/huggingface/golden/coatnet_bn",
       kImages,
       {{"stages.0.blocks.1.conv1_1x1.weight", "[M, E, 1, 1]"}}},
  };
}

// Full-size models, which are not executed.
std::vector<Model> families() {
  return {
      {"gpt2",
       kText,
       {{"transformer.wte.weight", "[V, E]"},
        {"transformer.wpe.weight", "[1024, E]"},
        {"transformer.h.11.attn.c_attn.weight", "[E, 3, N*64]"},
        {"transformer.h.11.mlp.c_fc.weight", "[E, M]"}}},
      {"bert-base",
       kText,
       {{"bert.encoder.layer.11.attention.self.query.weight", "[N*64, E]"},
        {"bert.encoder.layer.11.output.dense.weight", "[E, M]"}}},
      {"vit-b-16",
       kImages,
       {{"pixel_values", "[B, 3, H, W]"},
        {"vit.encoder.layer.3.intermediate.dense.weight", "[M, E]"},
        {"classifier.weight", "[V, E]"}}},
      {"t5-small",
       {{"batch", 2}, {"seq", 6}, {"decoder_seq", 5}},
       {{"decoder_input_ids", "[B, L]"},
        {"encoder.block.5.layer.0.SelfAttention.q.weight", "[N*64, E]"},
        {"encoder.block.5.layer.1.DenseReluDense.wi.weight", "[M, E]"}}},
      {"llama-3.2-1b",
       kText,
       {{"model.embed_tokens.weight", "[V, E]"},
        {"model.layers.15.self_attn.k_proj.weight", "[N*64, E]"},
        {"model.layers.15.mlp.gate_proj.weight", "[M, E]"}}},
      {"coatnet-0",
       kImages,
       {{"x", "[B, 3, H, W]"},
        {"stages.0.blocks.0.conv2_kxk.weight", "[M, 1, 3, 3]"},
        {"stages.3.blocks.0.shortcut.expand.weight", "[E', E, 1, 1]"},
        {"stages.2.blocks.4.attn.qkv.weight", "[N*96, E, 1, 1]"},
        {"stages.3.blocks.1.mlp.fc2.weight", "[E, M, 1, 1]"}}},
  };
}

// Token numbers stay below every vocabulary; masks are 0 or 1.
nn::Tensor input(const std::string& name, mlir::RankedTensorType type) {
  nn::Tensor tensor = simplify::madeUp(type, name.size());
  for (int64_t i = 0; !tensor.isFloat() && i < tensor.size(); ++i) {
    const bool mask = name == "attention_mask";
    tensor.setInt(i, mask ? i % 3 != 2 : (tensor.getInt(i) * 37 + i) % 50);
  }
  return tensor;
}

class ShardingModelsTest : public testing::TestWithParam<Model> {
 protected:
  ShardingModelsTest()
      : context_(simplify::testRegistry(),
                 mlir::MLIRContext::Threading::DISABLED) {}

  void SetUp() override {
    driver::ImportOptions options;
    options.dims = GetParam().dims;
    module_ = driver::importModel(GetParam().path, options, &context_);
    ASSERT_TRUE(module_);
    mlir::PassManager passes(&context_);
    simplify::buildSimplifyPipeline(passes);
    ASSERT_TRUE(succeeded(passes.run(*module_)));
  }

  void exposeAndName() {
    mlir::PassManager passes(&context_);
    passes.addPass(createExposeFactorsPass());
    passes.addPass(createNameDimensionsPass());
    ASSERT_TRUE(succeeded(passes.run(*module_)));
  }

  void expectNames() {
    auto main = module_->lookupSymbol<FuncOp>("main");
    Names found;
    for (mlir::BlockArgument argument : main.getArguments()) {
      const auto name = main.getArgAttrOfType<mlir::StringAttr>(
          argument.getArgNumber(), nn::kNameAttr);
      const auto dims = dimsOf(argument);
      ASSERT_TRUE(name && dims);
      std::string text;
      for (const Dim& dim : *dims)
        text += (text.empty() ? "" : ", ") + print(dim);
      found[name.str()] = "[" + text + "]";
    }
    for (const auto& [name, dims] : GetParam().names)
      EXPECT_EQ(found[name], dims) << name;
    module_->walk([](mlir::Operation* op) {
      for (mlir::Value result : op->getResults())
        EXPECT_TRUE(dimsOf(result).has_value());
    });
  }

  mlir::MLIRContext context_;
  mlir::OwningOpRef<mlir::ModuleOp> module_;
};

TEST_P(ShardingModelsTest, ComputesTheSameAndHasNames) {
  const std::vector<nn::Tensor> expected = simplify::runMain(*module_, input);
  exposeAndName();
  simplify::expectSame(simplify::runMain(*module_, input), expected,
                       "with factors exposed");
  expectNames();
}

class ShardingFamiliesTest : public ShardingModelsTest {};

TEST_P(ShardingFamiliesTest, HasNames) {
  exposeAndName();
  expectNames();
}

std::string nameOf(const testing::TestParamInfo<Model>& info) {
  std::string name = info.param.path;
  if (name.find('/') != std::string::npos) name = name.substr(6);
  for (char& c : name)
    if (!isalnum(c)) c = '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Models, ShardingModelsTest,
                         testing::ValuesIn(models()), nameOf);
INSTANTIATE_TEST_SUITE_P(Families, ShardingFamiliesTest,
                         testing::ValuesIn(families()), nameOf);

}  // namespace
}  // namespace partita::sharding
