// Training in 16 bits follows the f32 runs of the golden models, on one device
// and divided. Tensors are stored in the plan's types.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "compiler/driver/import_model.h"
#include "compiler/plan/plan.h"
#include "gtest/gtest.h"
#include "tests/e2e/compiled_model.h"
#include "tests/e2e/golden_training.h"

namespace partita::e2e {
namespace {

using plan::Precision;

struct Case {
  const char *model, *mesh, *shard;
  int zero;
  Precision precision;
  // Number of roundings on the longest path from an input to the loss:
  // products, norms, and ends of elementwise chains.
  int roundings;
  int64_t microbatches = 1;
  // For models with rectifiers in narrow layers, where one rounding switches
  // whole rows of gradients on or off: the largest relative error of one
  // parameter's gradient against f32. The error of all gradients together must
  // be four times smaller.
  double rectified = 0;

  // The upper bound on the relative change of a number by rounding. Roundings
  // on a path add up as if random, i.e. with the square root of their number.
  // Gradients also have the way back: their tolerance, measured as a whole, is
  // three times as large. A loss is about the logarithm of the number of
  // classes for any logits, so few roundings affect it.
  double Rounding() const {
    return precision == Precision::kBF16 ? std::ldexp(1, -9)
                                         : std::ldexp(1, -12);
  }
};

// AdamW of one parameter in double precision, with PyTorch's defaults.
class AdamW {
 public:
  AdamW(const HostTensor& value, double rounding)
      : rounding_(rounding),
        value_(value.floats(), value.floats() + value.elements()),
        first_(value_.size()),
        second_(value_.size()) {}

  // Takes one step with `gradient` and compares it with the step to `found`,
  // which becomes the new value. Returns the differences; empty if there are
  // none. The tolerance covers f32 rounding of the bias corrections (2e-4 of a
  // step) and of the value. If the gradients of two steps cancel, their
  // rounding shows too.
  std::string Step(const HostTensor& gradient, const HostTensor& found) {
    ++step_;
    std::string wrong;
    int64_t wrong_count = 0;
    for (size_t i = 0; i < value_.size(); ++i) {
      const double g = gradient.floats()[i];
      first_[i] = kBeta1 * first_[i] + (1 - kBeta1) * g;
      second_[i] = kBeta2 * second_[i] + (1 - kBeta2) * g * g;
      const double m = first_[i] / (1 - std::pow(kBeta1, step_)),
                   v = second_[i] / (1 - std::pow(kBeta2, step_));
      const double move =
          -kLearningRate * (m / (std::sqrt(v) + kEpsilon) + kDecay * value_[i]);
      const double moved = found.floats()[i] - value_[i];
      if (!(std::abs(moved - move) <=
            (2e-4 + 2 * rounding_) * kLearningRate +
                std::ldexp(std::abs(value_[i]), -23)) &&
          ++wrong_count == 1)
        wrong = absl::StrCat("element ", i, ", gradient ", g,
                             ": expected a step of ", move, ", found ", moved);
      value_[i] = found.floats()[i];
    }
    if (wrong_count > 1) absl::StrAppend(&wrong, "; ", wrong_count, " differ");
    return wrong;
  }

 private:
  static constexpr double kBeta1 = 0.9, kBeta2 = 0.999, kEpsilon = 1e-8,
                          kDecay = 0.01;
  double rounding_;
  std::vector<double> value_, first_, second_;
  int step_ = 0;
};

class PrecisionTest : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override { Compile(driver::TrainOptions()); }

  void Compile(driver::TrainOptions train) {
    const Case& given = GetParam();
    const std::string folder =
        absl::StrCat("tests/data/onnx-tiny/", given.model, "/");
    auto golden = ReadGoldenTraining(folder);
    ASSERT_TRUE(golden.ok()) << golden.status();
    golden_ = *std::move(golden);
    driver::ImportOptions options;
    for (const auto& [name, tensor] : golden_.inputs)
      options.input_shapes[name] = tensor.shape;
    CompilerContext context;
    auto module = driver::importModel(folder + "model_train.onnx", options,
                                      context.get());
    ASSERT_TRUE(module) << context.errors;
    std::optional<plan::Plan> plan;
    if (given.mesh[0] != '\0') {
      plan.emplace();
      plan->mesh = *plan::ParseMeshOption(given.mesh);
      plan->shard = *plan::ParseShardOption(given.shard, plan->mesh);
      plan->zero = given.zero;
      plan->precision = given.precision;
    }
    if (given.microbatches > 1) {
      if (!plan) plan.emplace();
      plan->precision = given.precision;
      plan->microbatches = given.microbatches;
    }
    train.optimizer = "adamw";
    train.keep_gradients = true;
    std::string name =
        testing::UnitTest::GetInstance()->current_test_info()->name();
    std::replace(name.begin(), name.end(), '/', '_');
    auto compiled = CompiledModel::MakeTraining(
        *module, testing::TempDir(), name, plan, train, given.precision);
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    model_ = std::move(*compiled);
  }

  std::map<std::string, HostTensor> Step(int64_t step) {
    std::map<std::string, HostTensor> named;
    auto outputs = model_->Run(golden_.InputsOf(model_->inputs(), step));
    EXPECT_TRUE(outputs.ok()) << outputs.status();
    if (!outputs.ok()) return named;
    for (size_t i = 0; i < outputs->size(); ++i)
      named[model_->outputs()[i].name] = (*outputs)[i];
    return named;
  }

  base::DType Narrow() const {
    return GetParam().precision == Precision::kBF16 ? base::DType::kBF16
                                                    : base::DType::kF16;
  }

  double GradientRounding() const {
    if (GetParam().rectified > 0) return GetParam().rectified;
    return 3 * std::sqrt(2 * GetParam().roundings) * GetParam().Rounding();
  }

  static HostTensor Converted(const HostTensor& tensor, base::DType to) {
    HostTensor result{to, tensor.shape,
                      std::string(tensor.elements() * base::SizeOf(to), 0)};
    base::Convert(tensor.dtype, tensor.bytes.data(), to, result.bytes.data(),
                  tensor.elements());
    return result;
  }

  GoldenTraining golden_;
  std::unique_ptr<CompiledModel> model_;
};

TEST_P(PrecisionTest, FollowsF32) {
  for (int64_t step = 1; step <= golden_.losses.elements(); ++step) {
    auto outputs = Step(step);
    ASSERT_TRUE(outputs.count("loss"));
    ASSERT_EQ(outputs["loss"].dtype, base::DType::kF32);
    EXPECT_NEAR(outputs["loss"].floats()[0], golden_.losses.floats()[step - 1],
                6 * GetParam().Rounding())
        << "step " << step;
    if (step > 1) continue;
    double all_apart = 0, all = 0;
    for (const auto& [name, expected] : golden_.gradients) {
      ASSERT_TRUE(outputs.count("grad." + name)) << name;
      // Results show f16 values without the loss scale; sums are in f32.
      const bool is_wide =
          Narrow() == base::DType::kF16 || GetParam().microbatches > 1;
      ASSERT_EQ(outputs["grad." + name].dtype,
                is_wide ? base::DType::kF32 : Narrow())
          << name;
      const HostTensor found =
          Converted(outputs["grad." + name], base::DType::kF32);
      double apart = 0, whole = 0;
      for (int64_t i = 0; i < expected.elements(); ++i) {
        apart += std::pow(found.floats()[i] - expected.floats()[i], 2);
        whole += std::pow(expected.floats()[i], 2);
      }
      EXPECT_LE(std::sqrt(apart), GradientRounding() * std::sqrt(whole) + 1e-4)
          << "gradient of " << name << ", size " << std::sqrt(whole);
      all_apart += apart;
      all += whole;
    }
    if (GetParam().rectified > 0)
      EXPECT_LE(std::sqrt(all_apart),
                GetParam().rectified / 4 * std::sqrt(all));
  }
}

// Each step moves the f32 copies like AdamW does with the gradients of that
// step. The parameters are the rounded copies.
TEST_P(PrecisionTest, UpdatesF32Copies) {
  std::map<std::string, AdamW> references;
  for (const auto& [name, unused] : golden_.gradients) {
    auto master = model_->ReadParameter(name + "/master");
    ASSERT_TRUE(master.ok()) << master.status();
    references.emplace(name, AdamW(*master, GetParam().Rounding()));
  }
  for (int64_t step = 1; step <= 2; ++step) {
    auto outputs = Step(step);
    for (auto& [name, reference] : references) {
      auto master = model_->ReadParameter(name + "/master"),
           average = model_->ReadParameter(name + "/exp_avg"),
           parameter = model_->ReadParameter(name);
      ASSERT_TRUE(master.ok()) << master.status();
      ASSERT_TRUE(average.ok()) << average.status();
      ASSERT_TRUE(parameter.ok()) << parameter.status();
      ASSERT_EQ(master->dtype, base::DType::kF32) << name;
      ASSERT_EQ(average->dtype, base::DType::kF32) << name;
      ASSERT_EQ(parameter->dtype, Narrow()) << name;
      EXPECT_EQ(parameter->bytes, Converted(*master, Narrow()).bytes) << name;
      ASSERT_TRUE(outputs.count("grad." + name)) << name;
      EXPECT_EQ(
          reference.Step(Converted(outputs["grad." + name], base::DType::kF32),
                         *master),
          "")
          << name << ", step " << step;
    }
  }
}

// If the scale is too large, gradients overflow. Such a step changes nothing,
// the next step has half the scale, and later steps are unaffected.
class LossScaleTest : public PrecisionTest {
 protected:
  void SetUp() override {}
};

TEST_P(LossScaleTest, SkipsStepsThatOverflow) {
  driver::TrainOptions train;
  train.loss_scale = 16777216;
  Compile(train);
  double scale = train.loss_scale;
  int64_t skipped = 0, good = 0;
  std::map<std::string, std::string> before;
  const auto read = [&] {
    std::map<std::string, std::string> bytes;
    for (const auto& [name, unused] : golden_.stepped)
      bytes[name] = model_->ReadParameter(name)->bytes;
    return bytes;
  };
  before = read();
  for (int64_t step = 1; good < golden_.losses.elements(); ++step) {
    ASSERT_LT(step, 30) << "still skipping at scale " << scale;
    auto outputs = Step(step);
    EXPECT_EQ(outputs["loss_scale"].floats()[0], scale) << step;
    EXPECT_NEAR(outputs["loss"].floats()[0], golden_.losses.floats()[good],
                6 * GetParam().Rounding())
        << "step " << step;
    int64_t now = 0;
    std::memcpy(&now, outputs["skipped"].bytes.data(), sizeof now);
    ASSERT_TRUE(now == skipped || now == skipped + 1) << step;
    if (now > skipped) {
      scale /= 2;
      EXPECT_EQ(read(), before) << step;
    } else {
      EXPECT_NE(read(), before) << step;
      ++good;
    }
    skipped = now;
    before = read();
  }
  EXPECT_GT(skipped, 0);
}

std::string NameOf(const testing::TestParamInfo<Case>& info) {
  std::string name = info.param.model;
  for (const char* letter = info.param.mesh; *letter; ++letter)
    if (std::isalnum(*letter)) name += *letter;
  if (info.param.zero > 0) absl::StrAppend(&name, "Zero", info.param.zero);
  if (info.param.microbatches > 1)
    absl::StrAppend(&name, "Cut", info.param.microbatches);
  return name + (info.param.precision == Precision::kBF16 ? "InBF16" : "InF16");
}

INSTANTIATE_TEST_SUITE_P(
    BF16, PrecisionTest,
    testing::Values(Case{"gpt2", "", "", 0, Precision::kBF16, 25},
                    Case{"vit", "", "", 0, Precision::kBF16, 29},
                    Case{"coatnet_64", "", "", 0, Precision::kBF16, 0, 1, 0.2},
                    Case{"t5", "", "", 0, Precision::kBF16, 0, 1, 0.1},
                    Case{"gpt2", "d=2,t=2", "B=d;M=t,N=t,V=t", 0,
                         Precision::kBF16, 25},
                    Case{"gpt2", "d=2", "B=d", 1, Precision::kBF16, 25},
                    Case{"gpt2", "d=3", "B=d", 2, Precision::kBF16, 25},
                    Case{"vit", "d=2", "B=d", 3, Precision::kBF16, 29},
                    Case{"gpt2", "", "", 0, Precision::kBF16, 25, 2},
                    Case{"vit", "d=2", "B=d", 2, Precision::kBF16, 29, 2}),
    NameOf);

// Without vit: its largest gradients do not fit f16 at the first scale.
INSTANTIATE_TEST_SUITE_P(
    F16, PrecisionTest,
    testing::Values(Case{"gpt2", "", "", 0, Precision::kF16, 25},
                    Case{"gpt2", "d=2", "B=d", 2, Precision::kF16, 25},
                    Case{"gpt2", "", "", 0, Precision::kF16, 25, 2}),
    NameOf);
INSTANTIATE_TEST_SUITE_P(
    F16, LossScaleTest,
    testing::Values(Case{"gpt2", "", "", 0, Precision::kF16, 25},
                    Case{"coatnet_64", "", "", 0, Precision::kF16, 0},
                    Case{"gpt2", "d=2,t=2", "B=d;M=t,N=t,V=t", 1,
                         Precision::kF16, 25}),
    NameOf);

}  // namespace
}  // namespace partita::e2e
