// The golden models under every plan, compiled and run on one thread per
// device. The results equal the undivided program's to 1e-5 of the largest
// value.
#include "compiler/driver/import_model.h"
#include "gtest/gtest.h"
#include "tests/e2e/compiled_model.h"
#include "tests/e2e/division_plan.h"
#include "tests/e2e/divisions.h"
#include "tests/e2e/golden.h"

namespace partita::e2e {
namespace {

driver::ImportOptions ShapesOf(const std::map<std::string, HostTensor>& in) {
  driver::ImportOptions options;
  for (const auto& [name, tensor] : in)
    options.input_shapes[name] = tensor.shape;
  return options;
}

// The undivided program's outputs. All divisions of a model, which follow each
// other, are compared with one run of it.
absl::StatusOr<std::vector<HostTensor>> Undivided(
    const std::string& model, mlir::ModuleOp module,
    const std::map<std::string, HostTensor>& inputs) {
  static auto* last = new std::pair<std::string, std::vector<HostTensor>>;
  if (last->first != model) {
    auto compiled =
        CompiledModel::Make(module, testing::TempDir(), model, /*threads=*/1);
    if (!compiled.ok()) return compiled.status();
    auto outputs = (*compiled)->Run(inputs);
    if (!outputs.ok()) return outputs.status();
    *last = {model, *std::move(outputs)};
  }
  return last->second;
}

class DividedTest : public testing::TestWithParam<DividedCase> {};

TEST_P(DividedTest, EqualsUndivided) {
  const auto& [model, division] = GetParam();
  const std::string folder = std::string("tests/data/onnx-tiny/") + model + "/";
  auto inputs = ReadTensors(folder + "io.safetensors", "in.");
  ASSERT_TRUE(inputs.ok()) << inputs.status();
  CompilerContext context;
  auto whole = driver::importModel(folder + "model_eval.onnx",
                                   ShapesOf(*inputs), context.get());
  ASSERT_TRUE(whole) << context.errors;
  mlir::OwningOpRef<mlir::ModuleOp> parts(whole->clone());

  auto plan = PlanOf(division);
  ASSERT_TRUE(plan.ok()) << plan.status();

  auto expected = Undivided(model, *whole, *inputs);
  ASSERT_TRUE(expected.ok()) << expected.status();
  auto divided = CompiledModel::MakeDivided(
      *parts, testing::TempDir(), std::string(model) + division.name, *plan);
  ASSERT_TRUE(divided.ok()) << divided.status();
  auto outputs = (*divided)->Run(*inputs);
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  ASSERT_EQ(outputs->size(), expected->size());
  for (size_t i = 0; i < outputs->size(); ++i) {
    Distance distance = Compare((*outputs)[i], (*expected)[i], 0, 0);
    EXPECT_LE(distance.largest, 1e-5 * distance.largest_expected)
        << "output " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(AllDivisions, DividedTest,
                         testing::ValuesIn(DividedCases()),
                         [](const auto& info) {
                           return std::string(info.param.model) + "_" +
                                  info.param.division.name;
                         });

}  // namespace
}  // namespace partita::e2e
