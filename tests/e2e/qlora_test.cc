// Low-rank adapters beside weights of integers, on one device and divided:
// outputs, gradients and five steps of AdamW equal PEFT's with the floats that
// the integers stand for.
#include "compiler/driver/import_model.h"
#include "gtest/gtest.h"
#include "runtime/executor/parameters.h"
#include "tests/e2e/compiled_model.h"
#include "tests/e2e/training_case.h"

namespace partita::e2e {
namespace {

constexpr char kData[] = "tests/data/qlora-tiny/";

// The model and its integers.
struct Base {
  const char* model;
  const char* weights;
};
constexpr Base kBases[] = {
    {"llama", "int4"}, {"llama", "int8"}, {"gpt2", "int4"}, {"gpt2", "int8"}};

std::string NameOf(const Base& base) {
  return std::string(base.model) + "_" + base.weights;
}

class QloraTest : public testing::TestWithParam<Base> {};

TEST_P(QloraTest, OutputsEqualPeft) {
  const std::string folder = kData + std::string(GetParam().model) + "/",
                    weights = GetParam().weights;
  auto inputs = ReadTensors(folder + "io.safetensors", "in.");
  auto expected = ReadTensors(folder + "io.safetensors", weights + ".out.");
  ASSERT_TRUE(inputs.ok()) << inputs.status();
  ASSERT_TRUE(expected.ok()) << expected.status();
  driver::ImportOptions options;
  options.lora = folder + "adapter";
  options.weights = folder + weights;
  options.dims["batch"] = (*inputs)["input_ids"].shape[0];
  options.dims["seq"] = (*inputs)["input_ids"].shape[1];
  CompilerContext context;
  auto module = driver::importModel(folder, options, context.get());
  ASSERT_TRUE(module) << context.errors;
  auto compiled =
      CompiledModel::Make(*module, testing::TempDir(), NameOf(GetParam()), 2);
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  auto outputs = (*compiled)->Run(*inputs);
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  const Distance distance =
      Compare(outputs->front(), (*expected)["y"], 1e-4, 1e-5);
  EXPECT_TRUE(distance.within) << "largest difference " << distance.largest
                               << " of " << distance.largest_expected;
}

INSTANTIATE_TEST_SUITE_P(Bases, QloraTest, testing::ValuesIn(kBases),
                         [](const auto& info) { return NameOf(info.param); });

using Case = std::tuple<Base, Division, int>;

TrainingCase CaseOf(const Case& given) {
  TrainingCase which;
  which.model = std::get<0>(given).model;
  which.weights = std::get<0>(given).weights;
  which.run = which.weights == std::string("int4") ? "int4." : "int8.";
  which.division = std::get<1>(given);
  which.zero = std::get<2>(given);
  which.from_folder = true;
  which.data = "qlora-tiny";
  which.adapters = "adapter";
  return which;
}

class QloraTrainingTest : public testing::TestWithParam<Case> {};

TEST_P(QloraTrainingTest, EqualsPeft) {
  TrainingRun run;
  const absl::Status started = run.Start(CaseOf(GetParam()));
  ASSERT_TRUE(started.ok()) << started;
  run.ExpectEqualsPyTorch();
  // Steps change adapters and their states only; weights of products are
  // integers.
  int integers = 0;
  for (const executor::ParameterSpec& each : run.model().parameters()) {
    const bool is_adapter = each.whole.name.find(".lora_") != std::string::npos;
    if (each.updated)
      EXPECT_TRUE(is_adapter || each.whole.name == "step") << each.whole.name;
    integers += each.whole.dtype == base::DType::kI8;
  }
  EXPECT_GE(integers, 8);
}

constexpr Division kDivisions[] = {
    kWhole,
    {"B2", "d=2", "B=d"},
    {"M2", "t=2", "M=t"},
    {"N2", "t=2", "N=t"},
    {"B2MNV2", "d=2,t=2", "B=d;M=t,N=t,V=t"},
};
INSTANTIATE_TEST_SUITE_P(Divided, QloraTrainingTest,
                         testing::Combine(testing::ValuesIn(kBases),
                                          testing::ValuesIn(kDivisions),
                                          testing::Values(0)),
                         [](const auto& info) {
                           return NameOf(CaseOf(info.param)) + "_" +
                                  std::get<0>(info.param).weights;
                         });
INSTANTIATE_TEST_SUITE_P(Zero, QloraTrainingTest,
                         testing::Combine(testing::Values(kBases[0]),
                                          testing::Values(kDivisions[1]),
                                          testing::Values(1, 3)),
                         [](const auto& info) {
                           return NameOf(CaseOf(info.param));
                         });

}  // namespace
}  // namespace partita::e2e
