// Mixtures of experts in ONNX files, as exporters and onnxruntime write them,
// on one device and with experts divided over 2 and 3: outputs equal PyTorch's
// and onnxruntime's, and so do gradients and five steps of AdamW.
#include "compiler/driver/import_model.h"
#include "gtest/gtest.h"
#include "runtime/executor/parameters.h"
#include "tests/e2e/compiled_model.h"
#include "tests/e2e/division_plan.h"
#include "tests/e2e/training_case.h"

namespace partita::e2e {
namespace {

constexpr char kData[] = "onnx-experts";

// Five experts, so no shard is as large as all others.
constexpr Division kExpertDivisions[] = {
    kWhole,
    {"X2", "x=2", "X=x"},
    {"X3", "x=3", "X=x"},
    {"B2OverX2", "d=2", "B=d;X=d"},
};

struct File {
  const char* folder;
  const char* name;  // without ".onnx"
};

std::string NameOfFile(const File& file) {
  return std::string(file.folder) + "_" + file.name;
}

// Compares the output with the tensor `expected` of the folder's results.
void ExpectOutput(const File& file, const Division& division,
                  const std::string& expected) {
  const std::string folder =
      std::string("tests/data/") + kData + "/" + file.folder + "/";
  auto inputs = ReadTensors(folder + "io.safetensors", "in.");
  auto outputs = ReadTensors(folder + "io.safetensors", "out.");
  ASSERT_TRUE(inputs.ok()) << inputs.status();
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  CompilerContext context;
  auto module =
      driver::importModel(folder + file.name + ".onnx", {}, context.get());
  ASSERT_TRUE(module) << context.errors;
  const std::string name = NameOfFile(file) + "_" + division.name;
  absl::StatusOr<std::unique_ptr<CompiledModel>> compiled;
  if (division.mesh[0] == '\0') {
    compiled = CompiledModel::Make(*module, testing::TempDir(), name, 2);
  } else {
    auto plan = PlanOf(division);
    ASSERT_TRUE(plan.ok()) << plan.status();
    compiled =
        CompiledModel::MakeDivided(*module, testing::TempDir(), name, *plan);
  }
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  auto results = (*compiled)->Run(*inputs);
  ASSERT_TRUE(results.ok()) << results.status();
  const Distance distance =
      Compare(results->front(), outputs->at(expected), 1e-5, 1e-5);
  EXPECT_TRUE(distance.within) << "largest difference " << distance.largest
                               << " of " << distance.largest_expected;
}

using Case = std::tuple<File, Division>;

std::string NameOfCase(const testing::TestParamInfo<Case>& info) {
  return NameOfFile(std::get<0>(info.param)) + "_" +
         std::get<1>(info.param).name;
}

constexpr File kModels[] = {
    {"loops", "rows_dynamo"},      {"loops", "rows_script"},
    {"loops", "where_dynamo"},     {"loops", "where_script"},
    {"loops", "product_dynamo"},   {"loops", "product_script"},
    {"loops", "columns_dynamo"},   {"loops", "columns_script"},
    {"loops", "one_hot_dynamo"},   {"loops", "one_hot_script"},
    {"mixtral", "batched_dynamo"}, {"mixtral", "batched_script"},
};
constexpr File kOperators[] = {
    {"moe", "relu"}, {"moe", "gelu"}, {"moe", "silu"}, {"moe", "swiglu"}};

class OnnxExpertsTest : public testing::TestWithParam<Case> {};

TEST_P(OnnxExpertsTest, OutputsEqualPyTorchs) {
  ExpectOutput(std::get<0>(GetParam()), std::get<1>(GetParam()), "y");
}
INSTANTIATE_TEST_SUITE_P(Files, OnnxExpertsTest,
                         testing::Combine(testing::ValuesIn(kModels),
                                          testing::ValuesIn(kExpertDivisions)),
                         NameOfCase);

class OnnxMoeTest : public testing::TestWithParam<Case> {};

TEST_P(OnnxMoeTest, OutputsEqualOnnxruntimes) {
  const File& file = std::get<0>(GetParam());
  ExpectOutput(file, std::get<1>(GetParam()), file.name);
}
INSTANTIATE_TEST_SUITE_P(Files, OnnxMoeTest,
                         testing::Combine(testing::ValuesIn(kOperators),
                                          testing::ValuesIn(kExpertDivisions)),
                         NameOfCase);

// The exporters that keep parameters under their names.
constexpr File kTrained[] = {
    {"loops", "rows_dynamo"},    {"loops", "rows_script"},
    {"loops", "where_dynamo"},   {"loops", "columns_script"},
    {"loops", "one_hot_dynamo"}, {"mixtral", "batched_script"},
};

absl::Status Start(const File& file, const Division& division,
                   TrainingRun& run) {
  const std::string name = std::string(file.name) + ".onnx";
  TrainingCase which;
  which.model = file.folder;
  which.division = division;
  which.data = kData;
  which.file = name.c_str();
  return run.Start(which);
}

class OnnxExpertsTrainingTest : public testing::TestWithParam<Case> {};

TEST_P(OnnxExpertsTrainingTest, EqualsPyTorch) {
  TrainingRun run;
  const absl::Status started =
      Start(std::get<0>(GetParam()), std::get<1>(GetParam()), run);
  ASSERT_TRUE(started.ok()) << started;
  run.ExpectEqualsPyTorch();
}
INSTANTIATE_TEST_SUITE_P(Files, OnnxExpertsTrainingTest,
                         testing::Combine(testing::ValuesIn(kTrained),
                                          testing::ValuesIn(kExpertDivisions)),
                         NameOfCase);

// The experts of every file become one tensor, of which a device holds a part.
class OnnxExpertsDivisionTest : public testing::TestWithParam<File> {};

TEST_P(OnnxExpertsDivisionTest, EachDeviceHoldsItsExperts) {
  TrainingRun run;
  const absl::Status started = Start(GetParam(), kExpertDivisions[1], run);
  ASSERT_TRUE(started.ok()) << started;
  int found = 0;
  for (const executor::ParameterSpec& parameter : run.model().parameters()) {
    if (parameter.whole.name != "moe.experts.*.w2.weight" &&
        parameter.whole.name != "moe.experts.down_proj")
      continue;
    EXPECT_EQ(parameter.whole.shape, (std::vector<int64_t>{5, 12, 16}));
    EXPECT_EQ(parameter.local.shape, (std::vector<int64_t>{3, 12, 16}));
    ++found;
  }
  EXPECT_EQ(found, 1);
}
INSTANTIATE_TEST_SUITE_P(
    Files, OnnxExpertsDivisionTest,
    testing::Values(
        File{"loops", "rows_dynamo"}, File{"loops", "rows_script"},
        File{"loops", "where_dynamo"}, File{"loops", "where_script"},
        File{"loops", "product_dynamo"}, File{"loops", "product_script"},
        File{"loops", "columns_dynamo"}, File{"loops", "columns_script"},
        File{"loops", "one_hot_dynamo"}, File{"loops", "one_hot_script"},
        File{"mixtral", "batched_script"}),
    [](const auto& info) { return NameOfFile(info.param); });

}  // namespace
}  // namespace partita::e2e
