// Models with weights from a seed: reproducible, different per weight, and with
// activations of a reasonable size.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>
#include <string>

#include "dialects/nn/dialect.h"
#include "frontends/huggingface/huggingface.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "tests/frontends/huggingface/run.h"

namespace partita::huggingface {
namespace {

std::vector<nn::InitAttr> initsOf(mlir::ModuleOp module) {
  std::vector<nn::InitAttr> inits;
  auto main = module.lookupSymbol<mlir::func::FuncOp>("main");
  for (unsigned i = 0; i < main.getNumArguments(); ++i)
    if (auto init = main.getArgAttrOfType<nn::InitAttr>(i, nn::kSourceAttr))
      inits.push_back(init);
  return inits;
}

TEST(Seeded, EachWeightHasItsOwnSeed) {
  Runner runner;
  HfOptions options;
  const auto first = importFamily("coatnet-1", options, runner.context());
  const auto again = importFamily("coatnet-1", options, runner.context());
  options.seed = 1;
  const auto other = importFamily("coatnet-1", options, runner.context());
  ASSERT_TRUE(first && again && other) << runner.diagnostics();
  EXPECT_EQ(initsOf(*first), initsOf(*again));
  std::set<uint64_t> seeds;
  for (const auto& module : {*first, *other})
    for (const nn::InitAttr init : initsOf(module))
      EXPECT_TRUE(seeds.insert(init.getSeed()).second);
}

// The root mean square of `model`'s results on random inputs.
double sizeOfResult(const std::string& model, const HfOptions& options) {
  Runner runner;
  mlir::OwningOpRef<mlir::ModuleOp> module =
      importFamily(model, options, runner.context());
  EXPECT_TRUE(module) << runner.diagnostics();
  if (!module) return 0.0;
  std::map<std::string, nn::InitAttr> inits;
  auto main = module->lookupSymbol<mlir::func::FuncOp>("main");
  for (unsigned i = 0; i < main.getNumArguments(); ++i)
    if (auto init = main.getArgAttrOfType<nn::InitAttr>(i, nn::kSourceAttr))
      inits[main.getArgAttrOfType<mlir::StringAttr>(i, nn::kNameAttr).str()] =
          init;
  const auto fill = [&](nn::Tensor& tensor, const std::string& name) {
    const nn::InitAttr init = inits.at(name);
    std::minstd_rand generator(static_cast<unsigned>(init.getSeed()));
    std::normal_distribution<float> normal(
        0.0f, static_cast<float>(init.getScale().getValueAsDouble()));
    const bool random = init.getKind() == "normal";
    for (int64_t i = 0; i < tensor.size(); ++i)
      tensor.setFloat(i, random                     ? normal(generator)
                         : init.getKind() == "ones" ? 1.0
                                                    : 0.0);
  };
  const auto input = [&](const std::string& name) -> nn::Tensor {
    for (unsigned i = 0; i < main.getNumArguments(); ++i) {
      if (main.getArgAttrOfType<mlir::StringAttr>(i, nn::kNameAttr) != name)
        continue;
      nn::Tensor tensor(
          mlir::cast<mlir::RankedTensorType>(main.getArgumentTypes()[i]));
      std::minstd_rand generator(7);
      std::normal_distribution<float> normal;
      for (int64_t j = 0; j < tensor.size(); ++j)
        tensor.isFloat() ? tensor.setFloat(j, normal(generator))
                         : tensor.setInt(j, j % 2);
      return tensor;
    }
    return nn::Tensor(mlir::RankedTensorType::get(
        {}, mlir::Float32Type::get(runner.context())));
  };
  const auto results = runner.run(*module, input, fill);
  EXPECT_FALSE(results.empty()) << runner.diagnostics();
  if (results.empty()) return 0.0;
  double squares = 0.0;
  for (int64_t i = 0; i < results[0].size(); ++i)
    squares += results[0].getFloat(i) * results[0].getFloat(i);
  return std::sqrt(squares / static_cast<double>(results[0].size()));
}

TEST(Seeded, ResultsAreOfASaneSize) {
  HfOptions image;
  image.dims = {{"image", 32}};
  HfOptions tokens;
  tokens.dims = {{"seq", 4}};
  for (const auto& [model, options] : {std::pair("coatnet-1", image),
                                       {"vit-ti-16", HfOptions()},
                                       {"minilm-l6", tokens},
                                       {"t5-small", tokens}}) {
    const double size = sizeOfResult(model, options);
    EXPECT_GT(size, 1e-3) << model;
    EXPECT_LT(size, 1e2) << model;
    RecordProperty(model, std::to_string(size));
  }
}

// The shapes of a model's inputs with small_dims and the given sizes.
std::vector<std::vector<int64_t>> smallInputs(
    const char* family, std::map<std::string, int64_t> dims = {}) {
  Runner runner;
  HfOptions options;
  options.small_dims = true;
  options.dims = std::move(dims);
  auto module = importFamily(family, options, runner.context());
  std::vector<std::vector<int64_t>> shapes;
  if (!module) return shapes;
  auto main = module->lookupSymbol<mlir::func::FuncOp>("main");
  for (unsigned i = 0; i < main.getNumArguments(); ++i)
    if (!main.getArgAttr(i, nn::kSourceAttr))
      shapes.push_back(mlir::cast<mlir::ShapedType>(main.getArgumentTypes()[i])
                           .getShape()
                           .vec());
  return shapes;
}

TEST(Seeded, SmallSizesAreThoseThatNobodyGave) {
  using Shapes = std::vector<std::vector<int64_t>>;
  EXPECT_EQ(smallInputs("gpt2").front(), (std::vector<int64_t>{3, 8}));
  EXPECT_EQ(smallInputs("gpt2", {{"batch", 5}}).front(),
            (std::vector<int64_t>{5, 8}));
  const Shapes t5 = smallInputs("t5-small");
  EXPECT_EQ(t5.front(), (std::vector<int64_t>{3, 8}));
  EXPECT_EQ(t5.back(), (std::vector<int64_t>{3, 6}));
  // Total downsampling is 32.
  EXPECT_EQ(smallInputs("coatnet-0"), (Shapes{{3, 3, 64, 64}}));
  // The position table has a fixed size.
  EXPECT_EQ(smallInputs("vit-ti-16"), (Shapes{{3, 3, 224, 224}}));
}

}  // namespace
}  // namespace partita::huggingface
