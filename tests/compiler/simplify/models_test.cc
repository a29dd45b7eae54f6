// Runs models exported by PyTorch through the passes of compiler/simplify: the
// expected patterns are found, and the numbers are the same after each pass.
#include <gtest/gtest.h>

#include <map>

#include "compiler/simplify/pipeline.h"
#include "dialects/nn/dialect.h"
#include "frontends/onnx/importer.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassManager.h"
#include "tests/compiler/simplify/evaluate.h"

namespace partita::simplify {
namespace {

using mlir::func::FuncOp;

// The patterns that the pipeline finds in a model, in @main and the functions
// it calls. Each function counts once.
struct Expected {
  const char* model;
  std::map<std::string, int64_t> dims;
  int64_t attentions, causal, layer_norms, rms_norms, softmaxes;
  int64_t kinds, layers;  // layer functions, and calls of them
};

std::vector<Expected> models() {
  const std::map<std::string, int64_t> images = {{"batch", 2}},
                                       text = {{"batch", 2}, {"seq", 12}},
                                       two_texts = {{"batch", 2},
                                                    {"seq", 12},
                                                    {"dec", 7}};
  return {
      {"bert_mlm", text, 2, 0, 6, 0, 0, 1, 2},
      {"coatnet_64", images, 3, 0, 7, 0, 0, 0, 0},
      {"coatnet_bias", images, 1, 0, 5, 0, 1, 0, 0},
      {"gpt2", text, 2, 2, 5, 0, 0, 1, 2},
      {"gpt2_4l", text, 4, 4, 9, 0, 0, 1, 4},
      {"t5", two_texts, 6, 2, 0, 12, 0, 2, 4},
      {"vit", images, 2, 0, 5, 0, 0, 1, 2},
      {"vit_3l", images, 3, 0, 7, 0, 0, 1, 3},
  };
}

// Token numbers stay below every vocabulary; masks are 0 or 1.
nn::Tensor input(const std::string& name, mlir::RankedTensorType type) {
  nn::Tensor tensor = madeUp(type, name.size());
  for (int64_t i = 0; !tensor.isFloat() && i < tensor.size(); ++i) {
    // Every query sees the first key.
    const int64_t value =
        name == "attention_mask" ? i % 3 != 2 : tensor.getInt(i) * 37 + i % 7;
    tensor.setInt(i, value);
  }
  return tensor;
}

// Runs the module after each pass that may have changed it.
class SameResults : public mlir::PassInstrumentation {
 public:
  explicit SameResults(mlir::ModuleOp module)
      : module_(module), expected_(runMain(module, input)) {}

  void runAfterPass(mlir::Pass* pass, mlir::Operation* op) override {
    if (pass->getArgument().empty()) return;  // an adaptor over functions
    expectSame(runMain(module_, input), expected_,
               "after " + pass->getName().str());
    ++passes_;
  }

  int64_t passes() const { return passes_; }

 private:
  mlir::ModuleOp module_;
  std::vector<nn::Tensor> expected_;
  int64_t passes_ = 0;
};

class ModelsTest : public testing::TestWithParam<Expected> {
 protected:
  void check(const std::string& file, const LoadTimeOptions& simplify) {
    mlir::MLIRContext context(testRegistry(),
                              mlir::MLIRContext::Threading::DISABLED);
    const std::string path =
        std::string("tests/data/onnx-tiny/") + GetParam().model + "/" + file;
    onnx::ImportOptions options;
    options.dims = GetParam().dims;
    auto module = onnx::importOnnx(path, options, &context);
    ASSERT_TRUE(module);

    mlir::PassManager passes(&context);
    buildSimplifyPipeline(passes);
    buildLoadTimePipeline(passes, simplify);
    auto same = std::make_unique<SameResults>(*module);
    const SameResults& checked = *same;
    passes.addInstrumentation(std::move(same));
    ASSERT_TRUE(succeeded(passes.run(*module)));
    EXPECT_GT(checked.passes(), 5);
    if (simplify.training) {
      EXPECT_EQ(module->lookupSymbol("init"), nullptr)
          << "the weights change between runs";
    }
    countComposites(*module);
  }

  void countComposites(mlir::ModuleOp module) {
    std::map<std::string, int64_t> calls{{"main", 1}};
    module.walk(
        [&](mlir::func::CallOp call) { ++calls[call.getCallee().str()]; });
    Expected found = {};
    module.walk([&](mlir::Operation* op) {
      auto function = op->getParentOfType<FuncOp>();
      if (!function) return;
      found.layers += mlir::isa<mlir::func::CallOp>(op);
      const int64_t times = calls[function.getName().str()];
      if (auto attention = mlir::dyn_cast<nn::AttentionOp>(op)) {
        found.attentions += times;
        found.causal += attention.getCausalOffset() ? times : 0;
      }
      found.layer_norms += mlir::isa<nn::LayerNormOp>(op) ? times : 0;
      found.rms_norms += mlir::isa<nn::RmsNormOp>(op) ? times : 0;
      found.softmaxes += mlir::isa<nn::SoftmaxOp>(op) ? times : 0;
    });
    for (FuncOp function : module.getOps<FuncOp>()) {
      found.kinds += function.isPrivate();
    }
    EXPECT_EQ(found.kinds, GetParam().kinds);
    EXPECT_EQ(found.layers, GetParam().layers);
    EXPECT_EQ(found.attentions, GetParam().attentions);
    EXPECT_EQ(found.causal, GetParam().causal);
    EXPECT_EQ(found.layer_norms, GetParam().layer_norms);
    EXPECT_EQ(found.rms_norms, GetParam().rms_norms);
    EXPECT_EQ(found.softmaxes, GetParam().softmaxes);
  }
};

TEST_P(ModelsTest, EvaluationExport) { check("model_eval.onnx", {}); }

TEST_P(ModelsTest, TrainingExport) {
  LoadTimeOptions options;
  options.training = true;
  check("model_train.onnx", options);
}

TEST_P(ModelsTest, MergedProjections) {
  LoadTimeOptions options;
  options.merge_projections = true;
  check("model_eval.onnx", options);
}

INSTANTIATE_TEST_SUITE_P(OnnxTiny, ModelsTest, testing::ValuesIn(models()),
                         [](const auto& info) {
                           return std::string(info.param.model);
                         });

}  // namespace
}  // namespace partita::simplify
