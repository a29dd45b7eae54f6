// The golden models under every plan, compiled and run on as many threads as
// the plan has devices: equal to the undivided program to 1e-5 of the largest
// value.
#include "compiler/driver/import_model.h"
#include "compiler/plan/plan.h"
#include "gtest/gtest.h"
#include "tests/e2e/compiled_model.h"
#include "tests/e2e/divisions.h"
#include "tests/e2e/golden.h"

namespace partita::e2e {
namespace {

class DividedTest
    : public testing::TestWithParam<std::tuple<const char*, Division>> {};

TEST_P(DividedTest, EqualsUndivided) {
  const auto& [model, division] = GetParam();
  const std::string folder = std::string("tests/data/onnx-tiny/") + model + "/";
  auto inputs = ReadTensors(folder + "io.safetensors", "in.");
  ASSERT_TRUE(inputs.ok()) << inputs.status();
  driver::ImportOptions options;
  for (const auto& [name, tensor] : *inputs)
    options.input_shapes[name] = tensor.shape;
  CompilerContext context;
  auto whole =
      driver::importModel(folder + "model_eval.onnx", options, context.get());
  ASSERT_TRUE(whole) << context.errors;
  mlir::OwningOpRef<mlir::ModuleOp> parts(whole->clone());

  plan::Plan plan;
  auto mesh = plan::ParseMeshOption(division.mesh);
  ASSERT_TRUE(mesh.ok()) << mesh.status();
  plan.mesh = *mesh;
  auto entries = plan::ParseShardOption(division.shard, plan.mesh);
  ASSERT_TRUE(entries.ok()) << entries.status();
  plan.shard = *entries;

  const std::string name = std::string(model) + division.name;
  auto undivided = CompiledModel::Make(*whole, testing::TempDir(), name, 1);
  ASSERT_TRUE(undivided.ok()) << undivided.status();
  auto divided = CompiledModel::MakeDivided(*parts, testing::TempDir(),
                                            name + "Divided", plan);
  ASSERT_TRUE(divided.ok()) << divided.status();
  auto expected = (*undivided)->Run(*inputs);
  ASSERT_TRUE(expected.ok()) << expected.status();
  auto outputs = (*divided)->Run(*inputs);
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  ASSERT_EQ(outputs->size(), expected->size());
  for (size_t i = 0; i < outputs->size(); ++i) {
    Distance distance = Compare((*outputs)[i], (*expected)[i], 0, 0);
    EXPECT_LE(distance.largest, 1e-5 * distance.largest_expected)
        << "output " << i;
  }
}

std::string NameOf(
    const testing::TestParamInfo<std::tuple<const char*, Division>>& info) {
  return std::string(std::get<0>(info.param)) + "_" +
         std::get<1>(info.param).name;
}

INSTANTIATE_TEST_SUITE_P(Models, DividedTest,
                         testing::Combine(testing::ValuesIn(kModels),
                                          testing::ValuesIn(kDivisions)),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(Depth, DividedTest,
                         testing::Combine(testing::ValuesIn(kModels),
                                          testing::ValuesIn(kDepthDivisions)),
                         NameOf);
std::vector<std::tuple<const char*, Division>> ScopedCases() {
  std::vector<std::tuple<const char*, Division>> cases;
  for (const ScopedDivision& scoped : kScopedDivisions)
    cases.emplace_back(scoped.model, scoped.division);
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Scopes, DividedTest, testing::ValuesIn(ScopedCases()),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(Images, DividedTest,
                         testing::Combine(testing::ValuesIn(kConvModels),
                                          testing::ValuesIn(kImageDivisions)),
                         NameOf);

}  // namespace
}  // namespace partita::e2e
