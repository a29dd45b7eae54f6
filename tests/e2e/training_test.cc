// Training of the golden models against PyTorch: the gradients of the first
// step, the parameters after it, and the losses of five steps with AdamW, on
// one device and under plans.
#include "absl/strings/str_cat.h"
#include "compiler/driver/import_model.h"
#include "compiler/plan/plan.h"
#include "gtest/gtest.h"
#include "tests/e2e/compiled_model.h"
#include "tests/e2e/divisions.h"
#include "tests/e2e/golden_training.h"

namespace partita::e2e {
namespace {

constexpr char kGradient[] = "grad.";

driver::TrainOptions AdamW() {
  driver::TrainOptions train;
  train.optimizer = "adamw";
  train.keep_gradients = true;
  return train;
}

constexpr Division kWhole = {"Whole", "", ""};

// How far AdamW's first step moves a parameter. Where a gradient is zero but
// for rounding (biases of keys, which the softmax does not see), so is nothing
// of the step: what two such gradients are apart is then allowed to their
// steps.
double FirstStep(double gradient) {
  return kLearningRate * gradient / (std::abs(gradient) + 1e-8);
}

// How the batch of a step comes about: the golden one, cut into `count` parts
// or, `repeated`, as often one after the other, cut into as many.
struct Microbatches {
  int64_t count = 1;
  bool repeated = false;
};

constexpr Microbatches kOneBatch;

using Case = std::tuple<const char*, Division, int, Microbatches>;

std::string NameOf(const testing::TestParamInfo<Case>& info) {
  const auto& [model, division, zero, microbatches] = info.param;
  return absl::StrCat(
      model, "_", division.name, zero > 0 ? absl::StrCat("Zero", zero) : "",
      microbatches.repeated    ? "Repeated"
      : microbatches.count > 1 ? "Cut"
                               : "",
      microbatches.count > 1 ? absl::StrCat(microbatches.count) : "");
}

class TrainingTest : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    const auto& [model, division, zero, microbatches] = GetParam();
    const std::string folder =
        absl::StrCat("tests/data/onnx-tiny/", model, "/");
    auto golden = ReadGoldenTraining(
        folder, model == std::string("coatnet_64") && microbatches.count == 2 &&
                        !microbatches.repeated
                    ? "micro2."
                    : "");
    ASSERT_TRUE(golden.ok()) << golden.status();
    golden_ = *std::move(golden);
    if (microbatches.repeated) golden_.Repeat(microbatches.count);
    CompilerContext context;
    auto module = Import(folder, context.get());
    ASSERT_TRUE(module) << context.errors;
    std::optional<plan::Plan> plan;
    if (division.mesh[0] != '\0') {
      plan.emplace();
      auto mesh = plan::ParseMeshOption(division.mesh);
      ASSERT_TRUE(mesh.ok()) << mesh.status();
      plan->mesh = *mesh;
      auto entries = plan::ParseShardOption(division.shard, plan->mesh);
      ASSERT_TRUE(entries.ok()) << entries.status();
      plan->shard = *entries;
      plan->zero = zero;
    }
    if (microbatches.count > 1) {
      if (!plan) plan.emplace();
      plan->microbatches = microbatches.count;
    }
    auto compiled = CompiledModel::MakeTraining(
        *module, testing::TempDir(), NameOf({GetParam(), 0}), plan, AdamW());
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    model_ = std::move(*compiled);
  }

  virtual mlir::OwningOpRef<mlir::ModuleOp> Import(
      const std::string& folder, mlir::MLIRContext* context) const {
    driver::ImportOptions options;
    for (const auto& [name, tensor] : golden_.inputs)
      options.input_shapes[name] = tensor.shape;
    return driver::importModel(folder + "model_train.onnx", options, context);
  }

  void ExpectEqualsPyTorch();

  // The outputs of step `step`, by name.
  std::map<std::string, HostTensor> Step(int64_t step) {
    std::map<std::string, HostTensor> named;
    auto outputs = model_->Run(golden_.InputsOf(model_->inputs(), step));
    EXPECT_TRUE(outputs.ok()) << outputs.status();
    if (!outputs.ok()) return named;
    for (size_t i = 0; i < outputs->size(); ++i)
      named[model_->outputs()[i].name] = (*outputs)[i];
    return named;
  }

  GoldenTraining golden_;
  std::unique_ptr<CompiledModel> model_;
};

void TrainingTest::ExpectEqualsPyTorch() {
  for (int64_t step = 1; step <= golden_.losses.elements(); ++step) {
    auto outputs = Step(step);
    ASSERT_TRUE(outputs.count("loss"));
    const float loss = outputs["loss"].floats()[0],
                expected = golden_.losses.floats()[step - 1];
    EXPECT_NEAR(loss, expected, 1e-4 * std::abs(expected)) << "step " << step;
    if (step > 1) continue;
    int compared = 0;
    for (const auto& [name, gradient] : golden_.gradients) {
      auto found = outputs.find(kGradient + name);
      if (found == outputs.end()) {
        ADD_FAILURE() << "no gradient of " << name;
        continue;
      }
      ++compared;
      Distance distance = Compare(found->second, gradient, 0, 0);
      EXPECT_LE(distance.largest, 1e-4 * distance.largest_expected + 1e-6)
          << "gradient of " << name << ", largest "
          << distance.largest_expected;
    }
    EXPECT_GT(compared, 0);
    for (const auto& [name, expected_parameter] : golden_.stepped) {
      auto parameter = model_->ReadParameter(name);
      ASSERT_TRUE(parameter.ok()) << parameter.status();
      ASSERT_EQ(parameter->shape, expected_parameter.shape) << name;
      auto gradient = golden_.gradients.find(name);
      const std::string own = kGradient + name;
      for (int64_t i = 0; i < parameter->elements(); ++i) {
        double allowed = 1e-6 + 1e-5 * std::abs(expected_parameter.floats()[i]);
        if (gradient != golden_.gradients.end())
          allowed += std::abs(FirstStep(outputs[own].floats()[i]) -
                              FirstStep(gradient->second.floats()[i]));
        ASSERT_NEAR(parameter->floats()[i], expected_parameter.floats()[i],
                    allowed)
            << name << " after the first step, element " << i;
      }
    }
  }
}

TEST_P(TrainingTest, EqualsPyTorch) { ExpectEqualsPyTorch(); }

// The same models by the other door, made from their configs.
class FolderTrainingTest : public TrainingTest {
 protected:
  mlir::OwningOpRef<mlir::ModuleOp> Import(
      const std::string& folder, mlir::MLIRContext* context) const override {
    driver::ImportOptions options;
    options.training = true;
    const std::vector<int64_t>& shape = golden_.inputs.begin()->second.shape;
    options.dims["batch"] = shape[0];
    if (shape.size() == 2) options.dims["seq"] = shape[1];
    return driver::importModel(folder, options, context);
  }
};

TEST_P(FolderTrainingTest, EqualsPyTorch) { ExpectEqualsPyTorch(); }

const auto kNoZero = testing::Values(0);
const auto kOne = testing::Values(kOneBatch);
INSTANTIATE_TEST_SUITE_P(Whole, TrainingTest,
                         testing::Combine(testing::ValuesIn(kModels),
                                          testing::Values(kWhole), kNoZero,
                                          kOne),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(Divided, TrainingTest,
                         testing::Combine(testing::ValuesIn(kModels),
                                          testing::ValuesIn(kDivisions),
                                          kNoZero, kOne),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(Images, TrainingTest,
                         testing::Combine(testing::ValuesIn(kConvModels),
                                          testing::ValuesIn(kImageDivisions),
                                          kNoZero, kOne),
                         NameOf);

constexpr Division kWithStates[] = {
    {"B2", "d=2", "B=d"},
    {"B3", "d=3", "B=d"},
    {"B4", "d=4", "B=d"},
    {"B2MNV2", "d=2,t=2", "B=d;M=t,N=t,V=t"},
};
INSTANTIATE_TEST_SUITE_P(Zero, TrainingTest,
                         testing::Combine(testing::ValuesIn(kModels),
                                          testing::ValuesIn(kWithStates),
                                          testing::Values(1, 2, 3), kOne),
                         NameOf);

// Batch norms make a batch of parts another one: coatnet_64 has references of
// its own for two, in which each has its own statistics.
constexpr const char* kCutModels[] = {"bert_mlm", "gpt2", "t5", "vit",
                                      "coatnet_64"};
constexpr const char* kLargeBatches[] = {"gpt2_4l", "vit_3l"};
constexpr Division kCutDivisions[] = {
    kWhole, {"B2", "d=2", "B=d"}, {"B2MNV2", "d=2,t=2", "B=d;M=t,N=t,V=t"}};
INSTANTIATE_TEST_SUITE_P(Cut, TrainingTest,
                         testing::Combine(testing::ValuesIn(kCutModels),
                                          testing::ValuesIn(kCutDivisions),
                                          kNoZero,
                                          testing::Values(Microbatches{2})),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(CutIntoFour, TrainingTest,
                         testing::Combine(testing::ValuesIn(kLargeBatches),
                                          testing::ValuesIn(kCutDivisions),
                                          kNoZero,
                                          testing::Values(Microbatches{4})),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(
    CutZero, TrainingTest,
    testing::Combine(testing::Values("gpt2_4l", "coatnet_64"),
                     testing::Values(kWithStates[0], kWithStates[1],
                                     kWithStates[3]),
                     testing::Values(1, 2, 3),
                     testing::Values(Microbatches{2})),
    NameOf);
INSTANTIATE_TEST_SUITE_P(
    Repeated, TrainingTest,
    testing::Combine(testing::ValuesIn(kModels),
                     testing::Values(kWhole, kDivisions[6]), kNoZero,
                     testing::Values(Microbatches{3, true})),
    NameOf);

constexpr const char* kFolderModels[] = {"gpt2", "coatnet_64", "coatnet_bias"};
constexpr Division kFolderDivisions[] = {kWhole, {"B2", "d=2", "B=d"}};
INSTANTIATE_TEST_SUITE_P(Folder, FolderTrainingTest,
                         testing::Combine(testing::ValuesIn(kFolderModels),
                                          testing::ValuesIn(kFolderDivisions),
                                          kNoZero, kOne),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(FolderImages, FolderTrainingTest,
                         testing::Combine(testing::Values("coatnet_bias"),
                                          testing::Values(kImageDivisions[0]),
                                          kNoZero, kOne),
                         NameOf);

}  // namespace
}  // namespace partita::e2e
