// Models with experts, imported from Hugging Face folders, on one device and
// divided: outputs, gradients and five steps of AdamW equal PyTorch's.
#include "compiler/driver/import_model.h"
#include "gtest/gtest.h"
#include "runtime/executor/parameters.h"
#include "tests/e2e/compiled_model.h"
#include "tests/e2e/training_case.h"

namespace partita::e2e {
namespace {

constexpr const char* kExpertModels[] = {"mixtral", "qwen3_moe", "deepseek_v3",
                                         "switch_transformers"};

class ExpertsFoldersTest : public testing::TestWithParam<const char*> {};

TEST_P(ExpertsFoldersTest, OutputsEqualPyTorchs) {
  const std::string folder =
      std::string("tests/data/experts-tiny/") + GetParam() + "/";
  auto inputs = ReadTensors(folder + "io.safetensors", "in.");
  auto expected = ReadTensors(folder + "io.safetensors", "out.");
  ASSERT_TRUE(inputs.ok()) << inputs.status();
  ASSERT_TRUE(expected.ok()) << expected.status();
  driver::ImportOptions options;
  for (const auto& [name, tensor] : *inputs) {
    options.dims["batch"] = tensor.shape[0];
    options.dims[name == "decoder_input_ids" ? "decoder_seq" : "seq"] =
        tensor.shape[1];
  }
  CompilerContext context;
  auto module = driver::importModel(folder, options, context.get());
  ASSERT_TRUE(module) << context.errors;
  auto compiled =
      CompiledModel::Make(*module, testing::TempDir(), GetParam(), 2);
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  auto outputs = (*compiled)->Run(*inputs);
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  const Distance distance =
      Compare(outputs->front(), (*expected)["y"], 1e-4, 1e-5);
  EXPECT_TRUE(distance.within) << "largest difference " << distance.largest
                               << " of " << distance.largest_expected;
}

INSTANTIATE_TEST_SUITE_P(Models, ExpertsFoldersTest,
                         testing::ValuesIn(kExpertModels),
                         [](const auto& info) { return info.param; });

using Case = std::tuple<const char*, Division>;

TrainingCase CaseOf(const Case& given) {
  TrainingCase which;
  which.model = std::get<0>(given);
  which.division = std::get<1>(given);
  which.from_folder = true;
  which.data = "experts-tiny";
  return which;
}

class ExpertsTrainingTest : public testing::TestWithParam<Case> {};

TEST_P(ExpertsTrainingTest, EqualsPyTorch) {
  TrainingRun run;
  const absl::Status started = run.Start(CaseOf(GetParam()));
  ASSERT_TRUE(started.ok()) << started;
  run.ExpectEqualsPyTorch();
}

constexpr Division kExpertDivisions[] = {
    kWhole,
    {"B2", "d=2", "B=d"},
    {"M2", "t=2", "M=t"},
    {"N2", "t=2", "N=t"},
    {"X2", "x=2", "X=x"},
    {"X4", "x=4", "X=x"},
    {"B2X2", "d=2,x=2", "B=d;X=x"},
    {"X2M2", "x=2,t=2", "X=x;M=t"},
    // Experts over the axis of the batch.
    {"B2OverX2", "d=2", "B=d;X=d"},
    {"B2OverX2ByRows", "d=2", "B=d;X=d", "", "rows"},
    {"B3OverX3ByRows", "d=3", "B=d;X=d", "", "rows"},
    {"B2OverX2M2ByRows", "d=2,t=2", "B=d;X=d;M=t", "", "rows"},
};
INSTANTIATE_TEST_SUITE_P(Divided, ExpertsTrainingTest,
                         testing::Combine(testing::ValuesIn(kExpertModels),
                                          testing::ValuesIn(kExpertDivisions)),
                         [](const auto& info) {
                           return NameOf(CaseOf(info.param));
                         });

// Training with the losses that keep routers balanced.
constexpr const char* kBalancedModels[] = {
    "mixtral_balanced", "qwen3_moe_balanced", "switch_transformers_balanced"};
constexpr Division kBalancedDivisions[] = {
    kWhole,
    {"B2", "d=2", "B=d"},
    {"L2", "s=2", "L=s"},
    {"X2", "x=2", "X=x"},
    {"B2OverX2", "d=2", "B=d;X=d"},
};
INSTANTIATE_TEST_SUITE_P(
    Balanced, ExpertsTrainingTest,
    testing::Combine(testing::ValuesIn(kBalancedModels),
                     testing::ValuesIn(kBalancedDivisions)),
    [](const auto& info) { return NameOf(CaseOf(info.param)); });

// The loss of the routers depends on all rows of the batch together.
TEST(ExpertsMicrobatchesTest, AreRefusedWithLossesOfRouters) {
  TrainingCase which = CaseOf({"mixtral_balanced", kWhole});
  which.microbatches = {2, /*repeated=*/true};
  TrainingRun run;
  const absl::Status started = run.Start(which);
  ASSERT_FALSE(started.ok());
  EXPECT_NE(std::string(started.message())
                .find("microbatches: expected each row of the batch to be "
                      "computed by itself"),
            std::string::npos)
      << started;
}

// The shape of a device's block of mixtral's matrices [4, 24, 16].
std::vector<int64_t> BlockUnder(const Division& division) {
  TrainingRun run;
  const absl::Status started = run.Start(CaseOf({"mixtral", division}));
  EXPECT_TRUE(started.ok()) << started;
  if (!started.ok()) return {};
  for (const executor::ParameterSpec& parameter : run.model().parameters())
    if (parameter.whole.name ==
        "model.layers.1.block_sparse_moe.experts.*.w3.weight")
      return parameter.local.shape;
  return {};
}

TEST(ExpertsDivisionTest, EachDeviceHoldsItsExperts) {
  using Shape = std::vector<int64_t>;
  EXPECT_EQ(BlockUnder({"X2Block", "x=2", "X=x"}), (Shape{2, 24, 16}));
  EXPECT_EQ(BlockUnder({"X4Block", "x=4", "X=x"}), (Shape{1, 24, 16}));
  EXPECT_EQ(BlockUnder({"X2M2Block", "x=2,t=2", "X=x;M=t"}),
            (Shape{2, 12, 16}));
  EXPECT_EQ(BlockUnder({"B2OverX2Block", "d=2", "B=d;X=d"}),
            (Shape{2, 24, 16}));
}

}  // namespace
}  // namespace partita::e2e
