// Products of groups of rows in programs of JAX (ragged_dot), as jax.export
// writes them for CPUs and GPUs: outputs and gradients equal JAX's, and each
// product reads every row once.
#include "compiler/driver/import_model.h"
#include "compiler/simplify/pipeline.h"
#include "dialects/nn/dialect.h"
#include "gtest/gtest.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "tests/e2e/compiled_model.h"

namespace partita::e2e {
namespace {

constexpr char kFolder[] = "tests/data/jax-tiny/";

struct Program {
  const char* name;
  int grouped_dots, weight_gradients;  // after simplification
};

class JaxExpertsTest : public testing::TestWithParam<Program> {};

TEST_P(JaxExpertsTest, OutputsAreThoseOfJax) {
  const std::string name = GetParam().name;
  auto inputs = ReadTensors(kFolder + name + ".safetensors", "in.");
  auto expected = ReadTensors(kFolder + name + ".safetensors", "out.");
  ASSERT_TRUE(inputs.ok()) << inputs.status();
  ASSERT_TRUE(expected.ok()) << expected.status();
  CompilerContext context;
  auto module =
      driver::importModel(kFolder + name + ".mlirbc", {}, context.get());
  ASSERT_TRUE(module) << context.errors;
  auto compiled =
      CompiledModel::Make(*module, testing::TempDir(), name, /*threads=*/2);
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  auto outputs = (*compiled)->Run(*inputs);
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  ASSERT_EQ(outputs->size(), expected->size());
  for (size_t i = 0; i < outputs->size(); ++i) {
    std::string output = (*compiled)->outputs()[i].name;
    if (output.rfind("result.", 0) == 0) output = output.substr(7);
    ASSERT_TRUE(expected->count(output)) << output;
    const Distance distance =
        Compare((*outputs)[i], expected->at(output), 1e-5, 1e-5);
    EXPECT_TRUE(distance.within)
        << output << ": largest difference " << distance.largest << " of "
        << distance.largest_expected;
  }
}

TEST_P(JaxExpertsTest, RowsAreReadOnce) {
  CompilerContext context;
  auto module = driver::importModel(
      std::string(kFolder) + GetParam().name + ".mlirbc", {}, context.get());
  ASSERT_TRUE(module) << context.errors;
  mlir::PassManager passes(context.get());
  simplify::buildSimplifyPipeline(passes, {});
  ASSERT_TRUE(mlir::succeeded(passes.run(*module)));
  int dots = 0, gradients = 0;
  module->walk([&](mlir::Operation* op) {
    dots += mlir::isa<nn::GroupedDotOp>(op);
    gradients += mlir::isa<nn::GroupedDotWeightGradOp>(op);
  });
  EXPECT_EQ(dots, GetParam().grouped_dots);
  EXPECT_EQ(gradients, GetParam().weight_gradients);
}

INSTANTIATE_TEST_SUITE_P(Programs, JaxExpertsTest,
                         testing::Values(Program{"ragged_products", 2, 1},
                                         Program{"ragged_products_gpu", 2, 1},
                                         Program{"ragged_experts", 3, 0},
                                         Program{"ragged_experts_gpu", 3, 0}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace partita::e2e
