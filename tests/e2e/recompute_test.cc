// Recomputation changes memory and nothing else: golden models train to
// PyTorch's losses under every policy, on one device and divided.
#include "absl/strings/str_cat.h"
#include "compiler/driver/import_model.h"
#include "compiler/plan/plan.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/compiled_model.h"
#include "tests/e2e/golden_training.h"

namespace partita::e2e {
namespace {

struct Case {
  const char *model, *mesh, *shard;
  const char* some_layers;  // a pattern
};

class RecomputeTest : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    auto golden = ReadGoldenTraining(Folder());
    ASSERT_TRUE(golden.ok()) << golden.status();
    golden_ = *std::move(golden);
  }

  static std::string Folder() {
    return absl::StrCat("tests/data/onnx-tiny/", GetParam().model, "/");
  }

  // `fields` are the fields of a plan. Without a mesh they are passed as
  // options, unless the case is a plan for one device.
  absl::StatusOr<std::unique_ptr<CompiledModel>> Compile(
      const std::string& name, const std::string& fields,
      bool is_plan = false) {
    const Case& given = GetParam();
    driver::ImportOptions options;
    for (const auto& [input, tensor] : golden_.inputs)
      options.input_shapes[input] = tensor.shape;
    CompilerContext context;
    auto module = driver::importModel(Folder() + "model_train.onnx", options,
                                      context.get());
    if (!module) return absl::InvalidArgumentError(context.errors);
    const bool divided = given.mesh[0] != '\0';
    auto plan = plan::ParsePlan(
        divided ? absl::StrCat("mesh: ", given.mesh, "\nshard: ", given.shard,
                               "\n", fields)
                : "mesh: {}\n" + fields,
        "plan.yaml");
    if (!plan.ok()) return plan.status();
    driver::TrainOptions train;
    train.optimizer = "adamw";
    train.recompute = plan->recompute;
    return CompiledModel::MakeTraining(
        *module, testing::TempDir(),
        absl::StrCat(given.model, divided ? "Divided" : "Whole", name),
        divided || is_plan ? std::optional<plan::Plan>(*plan) : std::nullopt,
        train);
  }

  // Trains five steps. Returns the size of the arena in bytes.
  int64_t Train(const std::string& name, const std::string& recompute) {
    SCOPED_TRACE(recompute);
    auto model = Compile(name, "recompute: " + recompute);
    EXPECT_TRUE(model.ok()) << model.status();
    if (!model.ok()) return 0;
    for (int64_t step = 1; step <= golden_.losses.elements(); ++step) {
      auto outputs = (*model)->Run(golden_.InputsOf((*model)->inputs(), step));
      EXPECT_TRUE(outputs.ok()) << outputs.status();
      if (!outputs.ok()) break;
      const float expected = golden_.losses.floats()[step - 1];
      EXPECT_EQ((*model)->outputs()[0].name, "loss");
      EXPECT_NEAR((*outputs)[0].floats()[0], expected,
                  1e-4 * std::abs(expected))
          << "step " << step;
    }
    return (*model)->report().arena_bytes;
  }

  GoldenTraining golden_;
};

TEST_P(RecomputeTest, LossesStayAndMemoryFalls) {
  const int64_t none = Train("None", "none");
  const int64_t selective = Train("Selective", "selective");
  const int64_t full = Train("Full", "full");
  const int64_t some =
      Train("Some", absl::StrCat("[none, {at: \"", GetParam().some_layers,
                                 "\", policy: full}]"));
  EXPECT_LE(selective, none);
  EXPECT_LE(some, none);
  // When divided, these models are so small that updates dominate the memory.
  if (GetParam().mesh[0] == '\0')
    EXPECT_LT(full, none);
  else
    EXPECT_LE(full, none);
}

// Models of repeated layers; one layer alone saves less than all of them.
class BudgetTest : public RecomputeTest {};

TEST_P(BudgetTest, TakesTheLeastThatFits) {
  const auto bytes = [&](const std::string& policy) -> int64_t {
    auto model = Compile("Probe", "recompute: " + policy, /*is_plan=*/true);
    EXPECT_TRUE(model.ok()) << model.status();
    return model.ok() ? (*model)->report().memoryTable().total() : 0;
  };
  const auto fit = [&](int64_t limit) {
    return Compile("Budget",
                   absl::StrCat("recompute: budget\nmemory: ", limit, " B"),
                   /*is_plan=*/true);
  };
  const int64_t none = bytes("none"), selective = bytes("selective"),
                full = bytes("full");
  for (const auto& [limit, chosen] :
       {std::pair(none, "none"), {selective, "selective"}, {full, "full"}}) {
    auto model = fit(limit);
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_LE((*model)->report().memoryTable().total(), limit);
    // Recompute in full up to some layer; more would save no memory.
    EXPECT_THAT((*model)->report().recomputation, testing::StartsWith(chosen));
  }
  auto model = fit(full - 1);
  ASSERT_FALSE(model.ok());
  EXPECT_THAT(std::string(model.status().message()),
              testing::HasSubstr("memory: expected at most"));
}

INSTANTIATE_TEST_SUITE_P(
    Models, RecomputeTest,
    testing::Values(Case{"gpt2", "", "", "*.h.0"},
                    Case{"gpt2", "{d: 2, t: 2}", "[{B: d}, {M: t, N: t}]",
                         "*.h.0"},
                    Case{"vit_3l", "", "", "*layer.{0,1}"},
                    Case{"coatnet_64", "", "", "stages.1"},
                    Case{"coatnet_64", "{d: 2}", "[{B: d}]", "stages.1"}),
    [](const auto& info) {
      return absl::StrCat(info.param.model,
                          info.param.mesh[0] == '\0' ? "_Whole" : "_Divided");
    });

INSTANTIATE_TEST_SUITE_P(Models, BudgetTest,
                         testing::Values(Case{"vit_3l", "", "", "*layer.0"}),
                         [](const auto& info) {
                           return std::string(info.param.model);
                         });

}  // namespace
}  // namespace partita::e2e
