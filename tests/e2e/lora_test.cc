// Low-rank adapters of PEFT folders, on one device and divided: outputs,
// gradients and five steps of AdamW equal PEFT's.
#include "frontends/lora/lora.h"

#include <filesystem>
#include <fstream>

#include "compiler/driver/import_model.h"
#include "gtest/gtest.h"
#include "runtime/executor/parameters.h"
#include "tests/e2e/compiled_model.h"
#include "tests/e2e/training_case.h"

namespace partita::e2e {
namespace {

constexpr char kData[] = "tests/data/lora-tiny/";

class LoraTest : public testing::TestWithParam<const char*> {};

TEST_P(LoraTest, OutputsEqualPeft) {
  const std::string folder = kData + std::string(GetParam()) + "/";
  auto inputs = ReadTensors(folder + "io.safetensors", "in.");
  auto expected = ReadTensors(folder + "io.safetensors", "out.");
  ASSERT_TRUE(inputs.ok()) << inputs.status();
  ASSERT_TRUE(expected.ok()) << expected.status();
  driver::ImportOptions options;
  options.dims["batch"] = (*inputs)["input_ids"].shape[0];
  options.dims["seq"] = (*inputs)["input_ids"].shape[1];
  options.lora = folder + "adapter";
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

INSTANTIATE_TEST_SUITE_P(Models, LoraTest, testing::Values("llama", "gpt2"),
                         [](const auto& info) { return info.param; });

using Case = std::tuple<const char*, Division, int>;

TrainingCase CaseOf(const Case& given) {
  TrainingCase which;
  which.model = std::get<0>(given);
  which.division = std::get<1>(given);
  which.zero = std::get<2>(given);
  which.from_folder = true;
  which.data = "lora-tiny";
  which.adapters = "adapter";
  return which;
}

class LoraTrainingTest : public testing::TestWithParam<Case> {};

TEST_P(LoraTrainingTest, EqualsPeft) {
  TrainingRun run;
  const absl::Status started = run.Start(CaseOf(GetParam()));
  ASSERT_TRUE(started.ok()) << started;
  run.ExpectEqualsPyTorch();
  // Steps change adapters and their states only.
  int adapters = 0, weights = 0;
  for (const executor::ParameterSpec& each : run.model().parameters()) {
    const bool is_adapter = each.whole.name.find(".lora_") != std::string::npos;
    if (each.kind == program::ParameterKind::state && each.updated)
      EXPECT_TRUE(is_adapter || each.whole.name == "step") << each.whole.name;
    if (each.kind != program::ParameterKind::parameter) continue;
    EXPECT_EQ(each.updated, is_adapter) << each.whole.name;
    ++(is_adapter ? adapters : weights);
  }
  EXPECT_GT(adapters, 0);
  EXPECT_GT(weights, 0);
}

constexpr Division kDivisions[] = {
    kWhole,
    {"B2", "d=2", "B=d"},
    {"M2N2", "t=2", "M=t,N=t"},
    {"N2", "t=2", "N=t"},
    {"E2", "t=2", "E=t"},
    {"B2MNV2", "d=2,t=2", "B=d;M=t,N=t,V=t"},
};
INSTANTIATE_TEST_SUITE_P(Divided, LoraTrainingTest,
                         testing::Combine(testing::Values("llama", "gpt2"),
                                          testing::ValuesIn(kDivisions),
                                          testing::Values(0)),
                         [](const auto& info) {
                           return NameOf(CaseOf(info.param));
                         });
INSTANTIATE_TEST_SUITE_P(Zero, LoraTrainingTest,
                         testing::Combine(testing::Values("llama"),
                                          testing::Values(kDivisions[1]),
                                          testing::Values(1, 3)),
                         [](const auto& info) {
                           return NameOf(CaseOf(info.param));
                         });

// Refusals: each says what was expected and what was found.
std::string ErrorOf(const std::string& lora) {
  driver::ImportOptions options;
  options.dims = {{"batch", 2}, {"seq", 4}};
  options.lora = lora;
  CompilerContext context;
  auto module =
      driver::importModel(kData + std::string("llama"), options, context.get());
  EXPECT_FALSE(module) << lora;
  return context.errors;
}

TEST(LoraRefusalTest, NamesWhatIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {"rank=0; targets=q_proj", "rank=N with N from 1 to 65536, found '0'"},
      {"rank=4", "expected targets="},
      {"rank=4; rank=5; targets=q_proj", "each name once, found 'rank'"},
      {"rank=4; target=q_proj", "found 'target'"},
      {"alpha=x; targets=q_proj", "alpha=X with a number X, found 'x'"},
      {"targets=q_porj", "found none that matches 'q_porj'"},
      {"targets=embed_tokens", "whose weight is read in another way"},
      {"no/such/folder", "NAME=VALUE"},
  };
  for (const auto& [lora, expected] : cases)
    EXPECT_NE(ErrorOf(lora).find(expected), std::string::npos)
        << lora << ": " << ErrorOf(lora);
}

TEST(LoraRefusalTest, AdaptersOfAnotherModel) {
  const std::string error = ErrorOf(kData + std::string("gpt2/adapter"));
  EXPECT_NE(error.find("expected adapters of this model"), std::string::npos)
      << error;
}

TEST(LoraRefusalTest, ConfigsThatMeanMore) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / "adapter";
  std::filesystem::create_directories(folder);
  const std::pair<const char*, const char*> cases[] = {
      {"{\"peft_type\": \"IA3\"}", "peft_type: expected \"LORA\""},
      {"{\"peft_type\": \"LORA\", \"use_dora\": true}", "use_dora"},
      {"{\"peft_type\": \"LORA\", \"r\": -1}", "r: expected a rank"},
      {"{\"peft_type\": \"LORA\", \"r\": 2}", "lora_alpha: expected a number"},
      {"{\"peft_type\": \"LORA\", \"r\": 2, \"bias\": \"all\"}", "bias"},
      {"[1", "expected JSON"},
  };
  for (const auto& [text, expected] : cases) {
    std::ofstream(folder / "adapter_config.json") << text;
    EXPECT_NE(ErrorOf(folder).find(expected), std::string::npos)
        << text << ": " << ErrorOf(folder);
  }
}

}  // namespace
}  // namespace partita::e2e
