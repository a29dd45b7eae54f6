#include "tests/e2e/training_case.h"

#include <cctype>
#include <cmath>
#include <optional>

#include "absl/strings/str_cat.h"
#include "compiler/plan/plan.h"
#include "frontends/lora/lora.h"
#include "gtest/gtest.h"
#include "tests/e2e/division_plan.h"

namespace partita::e2e {
namespace {

constexpr char kGradient[] = "grad.";

driver::TrainOptions AdamW() {
  driver::TrainOptions train;
  train.optimizer = "adamw";
  train.keep_gradients = true;
  return train;
}

// The size of AdamW's first step for a gradient. If a gradient is zero except
// for rounding (biases of keys, which the softmax cancels), the step is
// arbitrary; the step's tolerance then includes the difference between two such
// gradients.
double FirstStep(double gradient) {
  return kLearningRate * gradient / (std::abs(gradient) + 1e-8);
}

// Nothing if the case has one device and one batch.
absl::StatusOr<std::optional<plan::Plan>> PlanOf(const TrainingCase& which) {
  std::optional<plan::Plan> plan;
  if (which.division.mesh[0] != '\0') {
    auto divided = PlanOf(which.division);
    if (!divided.ok()) return divided.status();
    plan = *std::move(divided);
    plan->zero = which.zero;
  }
  if (which.microbatches.count > 1) {
    if (!plan) plan.emplace();
    plan->microbatches = which.microbatches.count;
  }
  if (which.schedule[0] != '\0') {
    auto schedule = plan::ParseSchedule(which.schedule);
    if (!schedule.ok()) return schedule.status();
    plan->schedule = *schedule;
  }
  return plan;
}

}  // namespace

std::string NameOf(const TrainingCase& which) {
  std::string name = absl::StrCat(
      which.model, "_", which.division.name,
      which.zero > 0 ? absl::StrCat("Zero", which.zero) : "",
      which.microbatches.repeated    ? "Repeated"
      : which.microbatches.count > 1 ? "Cut"
                                     : "",
      which.microbatches.count > 1 ? absl::StrCat(which.microbatches.count)
                                   : "");
  if (which.schedule[0] != '\0') name += "_";
  for (const char* letter = which.schedule; *letter != '\0'; ++letter)
    if (std::isalnum(static_cast<unsigned char>(*letter))) name += *letter;
  return name;
}

absl::Status TrainingRun::Start(const TrainingCase& which) {
  const std::string folder =
      absl::StrCat("tests/data/", which.data, "/", which.model, "/");
  const Microbatches& microbatches = which.microbatches;
  // Two parts have separate references, because each part has its own batch
  // statistics.
  auto golden = ReadGoldenTraining(
      folder, which.model == std::string("coatnet_64") &&
                      microbatches.count == 2 && !microbatches.repeated
                  ? "micro2."
                  : which.run);
  if (!golden.ok()) return golden.status();
  golden_ = *std::move(golden);
  if (microbatches.repeated) golden_.Repeat(microbatches.count);
  CompilerContext context;
  auto module = Import(which, folder, context.get());
  if (!module) return absl::InvalidArgumentError(context.errors);
  auto plan = PlanOf(which);
  if (!plan.ok()) return plan.status();
  driver::TrainOptions train = AdamW();
  if (which.adapters[0] != '\0') train.trained = lora::kAdapters;
  if (which.teacher[0] != '\0') train.trained = "*;!teacher.*";
  auto compiled = CompiledModel::MakeTraining(*module, testing::TempDir(),
                                              NameOf(which), *plan, train);
  if (!compiled.ok()) return compiled.status();
  model_ = std::move(*compiled);
  return absl::OkStatus();
}

mlir::OwningOpRef<mlir::ModuleOp> TrainingRun::Import(
    const TrainingCase& which, const std::string& folder,
    mlir::MLIRContext* context) const {
  driver::ImportOptions options;
  if (!which.from_folder) {
    for (const auto& [name, tensor] : golden_.inputs)
      options.input_shapes[name] = tensor.shape;
    return driver::importModel(folder + which.file, options, context);
  }
  options.training = true;
  if (which.adapters[0] != '\0') options.lora = folder + which.adapters;
  if (which.weights[0] != '\0') options.weights = folder + which.weights;
  if (which.teacher[0] != '\0') {
    options.teacher = folder + "../" + which.teacher;
    options.distill = which.distill;
  }
  for (const auto& [name, tensor] : golden_.inputs) {
    options.dims["batch"] = tensor.shape[0];
    if (tensor.shape.size() == 2)
      options.dims[name == "decoder_input_ids" ? "decoder_seq" : "seq"] =
          tensor.shape[1];
    if (name == "attention_mask") options.optional_inputs = {{name}};
  }
  return driver::importModel(folder, options, context);
}

std::map<std::string, HostTensor> TrainingRun::Step(int64_t step) {
  std::map<std::string, HostTensor> named;
  auto outputs = model_->Run(golden_.InputsOf(model_->inputs(), step));
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  if (!outputs.ok()) return named;
  for (size_t i = 0; i < outputs->size(); ++i)
    named[model_->outputs()[i].name] = (*outputs)[i];
  return named;
}

double TrainingRun::FirstLoss() {
  const auto outputs = Step(1);
  const auto loss = outputs.find("loss");
  EXPECT_NE(loss, outputs.end());
  return loss == outputs.end() ? 0 : loss->second.floats()[0];
}

void TrainingRun::ExpectEqualsPyTorch() {
  for (int64_t step = 1; step <= golden_.losses.elements(); ++step) {
    auto outputs = Step(step);
    ASSERT_TRUE(outputs.count("loss"));
    const float loss = outputs["loss"].floats()[0],
                expected = golden_.losses.floats()[step - 1];
    EXPECT_NEAR(loss, expected, 1e-4 * std::abs(expected)) << "step " << step;
    if (step > 1) continue;
    ExpectGradients(outputs);
    ExpectParameters(outputs);
    if (testing::Test::HasFatalFailure()) return;
  }
}

void TrainingRun::ExpectGradients(
    const std::map<std::string, HostTensor>& outputs) {
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
        << "gradient of " << name << ", largest " << distance.largest_expected;
  }
  EXPECT_GT(compared, 0);
}

void TrainingRun::ExpectParameters(
    const std::map<std::string, HostTensor>& outputs) {
  for (const auto& [name, expected] : golden_.stepped) {
    auto parameter = model_->ReadParameter(name);
    ASSERT_TRUE(parameter.ok()) << parameter.status();
    ASSERT_EQ(parameter->shape, expected.shape) << name;
    const auto gradient = golden_.gradients.find(name);
    const auto own = outputs.find(kGradient + name);
    for (int64_t i = 0; i < parameter->elements(); ++i) {
      double allowed = 1e-6 + 1e-5 * std::abs(expected.floats()[i]);
      if (gradient != golden_.gradients.end()) {
        ASSERT_NE(own, outputs.end()) << name;
        allowed += std::abs(FirstStep(own->second.floats()[i]) -
                            FirstStep(gradient->second.floats()[i]));
      }
      ASSERT_NEAR(parameter->floats()[i], expected.floats()[i], allowed)
          << name << " after the first step, element " << i;
    }
  }
}

}  // namespace partita::e2e
