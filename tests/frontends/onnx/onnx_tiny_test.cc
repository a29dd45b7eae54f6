// Interprets models exported by PyTorch and compares with PyTorch's outputs.
// Tests the importer without the compiler.
#include <gtest/gtest.h>

#include "dialects/nn/dialect.h"
#include "frontends/onnx/importer.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "tests/conformance/onnx_backend.h"
#include "tests/e2e/golden.h"

namespace partita::onnx {
namespace {

constexpr char kData[] = "tests/data/onnx-tiny/";

class OnnxTinyTest : public testing::TestWithParam<const char*> {
 protected:
  OnnxTinyTest() {
    mlir::DialectRegistry registry;
    registry.insert<nn::NNDialect>();
    nn::registerExternalModels(registry);
    context_.appendDialectRegistry(registry);
  }

  // Imports the file at the sizes of the recorded inputs, compares its output,
  // and returns the module.
  mlir::OwningOpRef<mlir::ModuleOp> check(const std::string& file,
                                          const std::string& output) {
    const std::string folder = std::string(kData) + GetParam() + "/";
    auto inputs = e2e::ReadTensors(folder + "io.safetensors", "in.");
    auto expected = e2e::ReadTensors(folder + "io.safetensors", "out.");
    if (!inputs.ok() || !expected.ok()) {
      ADD_FAILURE() << inputs.status() << expected.status();
      return {};
    }
    ImportOptions options;
    for (const auto& [name, tensor] : *inputs) {
      options.dims["batch"] = tensor.shape[0];
      if (name == "input_ids") options.dims["seq"] = tensor.shape[1];
      if (name == "decoder_input_ids") options.dims["dec"] = tensor.shape[1];
    }
    auto module = importOnnx(folder + file, options, &context_);
    if (!module) {
      ADD_FAILURE() << "not imported";
      return {};
    }
    auto main = module->lookupSymbol<mlir::func::FuncOp>("main");
    std::vector<nn::Tensor> arguments;
    for (unsigned i = 0; i < main.getNumArguments(); ++i) {
      if (main.getArgAttr(i, nn::kSourceAttr)) continue;
      auto name = main.getArgAttrOfType<mlir::StringAttr>(i, nn::kNameAttr);
      auto type =
          mlir::cast<mlir::RankedTensorType>(main.getArgumentTypes()[i]);
      const std::string& bytes = inputs->at(name.str()).bytes;
      auto tensor = nn::Tensor::fromBytes(
          type, llvm::ArrayRef<char>(bytes.data(), bytes.size()));
      if (mlir::failed(tensor)) {
        ADD_FAILURE() << "input " << name.str() << " is of another size";
        return {};
      }
      arguments.push_back(*tensor);
    }
    auto results = conformance::interpreterExecutor()(*module, arguments);
    if (mlir::failed(results)) {
      ADD_FAILURE() << "not executed";
      return {};
    }
    const e2e::HostTensor& wanted = expected->at(output);
    e2e::HostTensor actual = wanted;
    std::vector<char> bytes = results->front().toBytes();
    actual.bytes.assign(bytes.begin(), bytes.end());
    EXPECT_EQ(actual.bytes.size(), wanted.bytes.size());
    if (actual.bytes.size() == wanted.bytes.size()) {
      e2e::Distance distance = e2e::Compare(actual, wanted, 1e-4, 1e-5);
      EXPECT_TRUE(distance.within) << "largest difference " << distance.largest
                                   << " of " << distance.largest_expected;
    }
    return module;
  }

  mlir::MLIRContext context_;
};

TEST_P(OnnxTinyTest, EvaluationExportEqualsPyTorch) {
  check("model_eval.onnx", "eval.y");
}

TEST_P(OnnxTinyTest, TrainingExportEqualsPyTorch) {
  auto module = check("model_train.onnx", "train.y");
  if (!module) return;
  // Every parameter that PyTorch trained is a separate argument. (A tied
  // parameter has one name in the file; gradients are recorded under its first
  // name.)
  auto main = module->lookupSymbol<mlir::func::FuncOp>("main");
  std::map<std::string, mlir::Type> parameters;
  for (unsigned i = 0; i < main.getNumArguments(); ++i) {
    auto kind = main.getArgAttrOfType<mlir::StringAttr>(i, nn::kKindAttr);
    if (kind && kind.getValue() == "parameter") {
      auto name = main.getArgAttrOfType<mlir::StringAttr>(i, nn::kNameAttr);
      parameters[name.str()] = main.getArgumentTypes()[i];
    }
  }
  auto gradients = e2e::ReadTensors(
      std::string(kData) + GetParam() + "/io.safetensors", "grad.");
  ASSERT_TRUE(gradients.ok()) << gradients.status();
  ASSERT_FALSE(gradients->empty());
  for (const auto& [name, gradient] : *gradients)
    EXPECT_TRUE(parameters.count(name)) << name;
  EXPECT_EQ(parameters.size(), gradients->size());
}

INSTANTIATE_TEST_SUITE_P(Models, OnnxTinyTest,
                         testing::Values("bert_mlm", "coatnet_64",
                                         "coatnet_bias", "gpt2", "gpt2_4l",
                                         "t5", "vit", "vit_3l"),
                         [](const auto& info) {
                           return std::string(info.param);
                         });

}  // namespace
}  // namespace partita::onnx
