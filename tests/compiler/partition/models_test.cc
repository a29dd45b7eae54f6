// Other people's models, divided along every dimension they have: the program
// of one device, run for all devices on plain numbers, equals the undivided
// model. Rows beyond a dimension's end hold NaN, so whoever uses them is found.
#include <gtest/gtest.h>

#include <map>

#include "compiler/driver/import_model.h"
#include "compiler/driver/model_phases.h"
#include "compiler/partition/local_form.h"
#include "compiler/partition/spmd_interpreter.h"
#include "compiler/sharding/convert.h"
#include "dialects/dist/dialect.h"
#include "dialects/nn/dialect.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Pass/PassManager.h"
#include "tests/compiler/simplify/evaluate.h"
#include "tests/e2e/divisions.h"

namespace partita::partition {
namespace {

using e2e::Division;
using mlir::RankedTensorType;
using mlir::func::FuncOp;

// Token numbers stay below every vocabulary, masks are 0 or 1.
nn::Tensor input(const std::string& name, RankedTensorType type) {
  nn::Tensor tensor = simplify::madeUp(type, name.size());
  for (int64_t i = 0; !tensor.isFloat() && i < tensor.size(); ++i)
    tensor.setInt(i, name == "attention_mask"
                         ? i % 3 != 2  // every query sees the first key
                         : tensor.getInt(i) * 37 + i % 7);
  return tensor;
}

class ModelsTest
    : public testing::TestWithParam<std::tuple<const char*, Division>> {
 protected:
  ModelsTest() : context_(registry(), mlir::MLIRContext::Threading::DISABLED) {}

  static mlir::DialectRegistry registry() {
    mlir::DialectRegistry registry = simplify::testRegistry();
    registry.insert<dist::DistDialect>();
    registerLocalForms(registry);
    return registry;
  }

  mlir::OwningOpRef<mlir::ModuleOp> import(const std::string& model) {
    driver::ImportOptions options;
    options.dims["batch"] = 4;
    if (e2e::TakesText(model)) options.dims["seq"] = 8;
    if (model == "t5") options.dims["dec"] = 6;
    return driver::importModel(
        "tests/data/onnx-tiny/" + model + "/model_eval.onnx", options,
        &context_);
  }

  bool run(mlir::ModuleOp module, const std::vector<driver::Phase>& phases) {
    for (const driver::Phase& phase : phases) {
      mlir::PassManager passes(&context_);
      phase.build(passes);
      if (failed(passes.run(module))) {
        ADD_FAILURE() << "phase " << phase.name << " failed";
        return false;
      }
    }
    return true;
  }

  mlir::MLIRContext context_;
};

RankedTensorType globalType(mlir::Attribute attr) {
  return mlir::cast<RankedTensorType>(
      mlir::cast<mlir::TypeAttr>(attr).getValue());
}

// All results of the divided @main, put together.
std::vector<nn::Tensor> runDivided(mlir::ModuleOp module) {
  const core::Mesh mesh = *sharding::meshOf(module);
  auto main = module.lookupSymbol<FuncOp>("main");
  llvm::SmallVector<Everywhere> arguments;
  for (unsigned i = 0; i < main.getNumArguments(); ++i) {
    auto global = globalType(main.getArgAttr(i, dist::kGlobalTypeAttr));
    auto sharding = sharding::toCore(
        main.getArgAttrOfType<dist::ShardingAttr>(i, dist::kShardingAttr),
        mesh);
    arguments.push_back(scatterTensor(
        simplify::argumentOf(main, i, global, input), mesh, *sharding));
  }
  auto results = interpretEverywhere(main, mesh, arguments);
  if (failed(results)) {
    ADD_FAILURE() << "the divided program cannot be run";
    return {};
  }
  std::vector<nn::Tensor> whole;
  for (auto [i, result] : llvm::enumerate(*results)) {
    auto sharding = sharding::toCore(
        main.getResultAttrOfType<dist::ShardingAttr>(i, dist::kShardingAttr),
        mesh);
    whole.push_back(assembleTensor(
        result, mesh, globalType(main.getResultAttr(i, dist::kGlobalTypeAttr)),
        *sharding));
  }
  return whole;
}

// To 1e-5 of the largest value.
void expectEqual(const std::vector<nn::Tensor>& actual,
                 const std::vector<nn::Tensor>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t result = 0; result < actual.size(); ++result) {
    const nn::Tensor &a = actual[result], &e = expected[result];
    ASSERT_TRUE(a.type() == e.type());
    double largest = 0, distance = 0;
    for (int64_t i = 0; i < a.size(); ++i) {
      ASSERT_FALSE(std::isnan(a.getFloat(i))) << "element " << i;
      largest = std::max(largest, std::abs(e.getFloat(i)));
      distance = std::max(distance, std::abs(a.getFloat(i) - e.getFloat(i)));
    }
    EXPECT_LE(distance, 1e-5 * largest) << "result " << result;
  }
}

TEST_P(ModelsTest, DividedEqualsUndivided) {
  const auto& [model, division] = GetParam();
  auto whole = import(model);
  ASSERT_TRUE(whole);
  ASSERT_TRUE(run(*whole, driver::simplifyModel()));
  auto divided = mlir::OwningOpRef<mlir::ModuleOp>(whole->clone());

  plan::Plan plan;
  auto mesh = plan::ParseMeshOption(division.mesh);
  ASSERT_TRUE(mesh.ok()) << mesh.status();
  plan.mesh = *mesh;
  auto entries = plan::ParseShardOption(division.shard, plan.mesh);
  ASSERT_TRUE(entries.ok()) << entries.status();
  plan.shard = *entries;
  ASSERT_TRUE(run(*divided, driver::divideModel(plan)));
  expectEqual(runDivided(*divided), simplify::runMain(*whole, input));
}

std::string nameOf(
    const testing::TestParamInfo<std::tuple<const char*, Division>>& info) {
  return std::string(std::get<0>(info.param)) + "_" +
         std::get<1>(info.param).name;
}

INSTANTIATE_TEST_SUITE_P(Dimensions, ModelsTest,
                         testing::Combine(testing::ValuesIn(e2e::kModels),
                                          testing::ValuesIn(e2e::kDivisions)),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(
    Images, ModelsTest,
    testing::Combine(testing::ValuesIn(e2e::kConvModels),
                     testing::ValuesIn(e2e::kImageDivisions)),
    nameOf);

}  // namespace
}  // namespace partita::partition
