// Compares optimizers with plain loops in double precision: parameters after
// three steps, undivided and divided, given the gradients that the program
// computed; and losses of divided runs with the undivided run's losses.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler/driver/import_model.h"
#include "compiler/plan/plan.h"
#include "gtest/gtest.h"
#include "tests/e2e/compiled_model.h"
#include "tests/e2e/division_plan.h"
#include "tests/e2e/divisions.h"
#include "tests/e2e/golden_training.h"

namespace partita::e2e {
namespace {

using Numbers = std::vector<double>;

constexpr int kSteps = 3;

double SumOfSquares(const Numbers& x) {
  return std::inner_product(x.begin(), x.end(), x.begin(), 0.0);
}

// One parameter.
class Reference {
 public:
  Reference(const driver::TrainOptions& train, std::vector<int64_t> shape,
            Numbers value, bool bias)
      : train_(train),
        shape_(std::move(shape)),
        value_(std::move(value)),
        rate_(kLearningRate * (bias && !train.lr_scale.empty() ? 0.1 : 1)),
        decay_(bias && !train.no_decay.empty() ? 0 : train.weight_decay),
        first_(value_.size()),
        second_(value_.size()),
        columns_(value_.size()) {}

  const Numbers& value() const { return value_; }
  double ratio() const { return ratio_; }  // LAMB's average

  void Step(Numbers gradient, int t) {
    if (train_.optimizer == "sgd") return Sgd(std::move(gradient));
    if (train_.optimizer == "adafactor") return Adafactor(gradient, t);
    Adam(std::move(gradient), t);
  }

 private:
  void Sgd(Numbers g) {
    for (size_t i = 0; i < g.size(); ++i) {
      g[i] += decay_ * value_[i];
      first_[i] = train_.momentum * first_[i] + g[i];
      value_[i] -= rate_ * (train_.nesterov ? g[i] + train_.momentum * first_[i]
                                            : first_[i]);
    }
  }

  void Adam(Numbers g, int t) {
    const bool adam = train_.optimizer == "adam";
    Numbers direction(g.size());
    for (size_t i = 0; i < g.size(); ++i) {
      if (adam) g[i] += decay_ * value_[i];
      first_[i] = train_.beta1 * first_[i] + (1 - train_.beta1) * g[i];
      second_[i] = train_.beta2 * second_[i] + (1 - train_.beta2) * g[i] * g[i];
      const double m = first_[i] / (1 - std::pow(train_.beta1, t)),
                   v = second_[i] / (1 - std::pow(train_.beta2, t));
      direction[i] = m / (std::sqrt(v) + train_.epsilon);
      if (!adam) direction[i] += decay_ * value_[i];
    }
    double ratio = 1;
    if (absl::EndsWith(train_.optimizer, "lamb")) {
      const double size = std::sqrt(SumOfSquares(value_)),
                   length = std::sqrt(SumOfSquares(direction));
      if (size > 0 && length > 0) ratio = size / length;
      ratio_ = 0.9 * ratio_ + 0.1 * ratio;
    }
    for (size_t i = 0; i < g.size(); ++i)
      value_[i] -= rate_ * ratio * direction[i];
  }

  int64_t StrideOf(int dim) const {
    int64_t stride = 1;
    for (size_t i = dim + 1; i < shape_.size(); ++i) stride *= shape_[i];
    return stride;
  }

  // The index of element i with index 0 along dimension `dim`.
  int64_t Without(int dim, int64_t i) const {
    const int64_t stride = StrideOf(dim);
    return i / (stride * shape_[dim]) * stride * shape_[dim] + i % stride;
  }

  // The mean along a dimension, repeated at every element.
  Numbers Mean(const Numbers& x, int dim) const {
    Numbers sums(x.size());
    for (size_t i = 0; i < x.size(); ++i)
      sums[Without(dim, i)] += x[i] / shape_[dim];
    Numbers result(x.size());
    for (size_t i = 0; i < x.size(); ++i) result[i] = sums[Without(dim, i)];
    return result;
  }

  void Adafactor(const Numbers& g, int t) {
    std::vector<int> dims(shape_.size());
    std::iota(dims.begin(), dims.end(), 0);
    std::sort(dims.begin(), dims.end(), [&](int a, int b) {
      return std::pair(shape_[a], a) < std::pair(shape_[b], b);
    });
    const bool whole = dims.size() < 2 || shape_[dims[dims.size() - 2]] == 1;
    const double d = 1 - std::pow(t, -0.8);
    Numbers u(g.size()), direction(g.size());
    for (size_t i = 0; i < g.size(); ++i) u[i] = g[i] * g[i] + 1e-30;
    const auto average = [&](Numbers& old, const Numbers& x) {
      for (size_t i = 0; i < g.size(); ++i)
        old[i] = d * old[i] + (1 - d) * x[i];
    };
    if (whole) {
      average(second_, u);
      for (size_t i = 0; i < g.size(); ++i)
        direction[i] = g[i] / std::sqrt(second_[i]);
    } else {
      const int a = dims[dims.size() - 2], b = dims[dims.size() - 1];
      average(second_, Mean(u, a));
      average(columns_, Mean(u, b));
      const Numbers center = Mean(second_, b);
      for (size_t i = 0; i < g.size(); ++i)
        direction[i] = g[i] / std::sqrt(second_[i] * columns_[i] / center[i]);
    }
    const double length =
        std::sqrt(SumOfSquares(direction) / static_cast<double>(g.size()));
    for (size_t i = 0; i < g.size(); ++i)
      value_[i] -=
          rate_ * (direction[i] / std::max(1.0, length) + decay_ * value_[i]);
  }

  const driver::TrainOptions& train_;
  const std::vector<int64_t> shape_;
  Numbers value_;
  const double rate_, decay_;
  Numbers first_, second_, columns_;
  double ratio_ = 0;
};

struct Chosen {
  const char* name;
  const char* optimizer;
  double momentum = 0;
  bool nesterov = false, groups = false;
};

struct Case {
  const char* model;
  Chosen chosen;
  Division division;
  int zero = 0;
};

Numbers ToNumbers(const HostTensor& tensor) {
  return {tensor.floats(), tensor.floats() + tensor.elements()};
}

class OptimizersTest : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    const Case& given = GetParam();
    train_.optimizer = given.chosen.optimizer;
    train_.momentum = given.chosen.momentum;
    train_.nesterov = given.chosen.nesterov;
    if (given.chosen.groups) {
      train_.lr_scale = "*weight=7;*=1;*bias=0.1";  // the last match counts
      train_.no_decay = "*bias";
    }
    train_.keep_gradients = true;
    auto golden = ReadGoldenTraining(Folder());
    ASSERT_TRUE(golden.ok()) << golden.status();
    golden_ = *std::move(golden);
    model_ = Compile(given.division);
  }

  std::string Folder() const {
    return absl::StrCat("tests/data/onnx-tiny/", GetParam().model, "/");
  }

  std::unique_ptr<CompiledModel> Compile(const Division& division) const {
    driver::ImportOptions options;
    for (const auto& [name, tensor] : golden_.inputs)
      options.input_shapes[name] = tensor.shape;
    CompilerContext context;
    auto module = driver::importModel(Folder() + "model_train.onnx", options,
                                      context.get());
    EXPECT_TRUE(module) << context.errors;
    if (!module) return nullptr;
    std::optional<plan::Plan> plan;
    if (division.mesh[0] != '\0') {
      plan = *PlanOf(division);
      plan->zero = GetParam().zero;
    }
    auto compiled = CompiledModel::MakeTraining(
        *module, testing::TempDir(),
        absl::StrCat(GetParam().model, division.name, GetParam().zero,
                     GetParam().chosen.name),
        plan, train_);
    EXPECT_TRUE(compiled.ok()) << compiled.status();
    return compiled.ok() ? std::move(*compiled) : nullptr;
  }

  std::map<std::string, HostTensor> Step(CompiledModel& model, int64_t step) {
    std::map<std::string, HostTensor> named;
    auto outputs = model.Run(golden_.InputsOf(model.inputs(), step));
    EXPECT_TRUE(outputs.ok()) << outputs.status();
    if (!outputs.ok()) return named;
    for (size_t i = 0; i < outputs->size(); ++i)
      named[model.outputs()[i].name] = (*outputs)[i];
    return named;
  }

  // Losses of the undivided model, used by several cases.
  const std::vector<float>& Undivided() {
    static auto& known = *new std::map<std::string, std::vector<float>>;
    auto& losses =
        known[absl::StrCat(GetParam().model, GetParam().chosen.name)];
    if (!losses.empty()) return losses;
    auto model = Compile({"", "", ""});
    for (int step = 1; model && step <= kSteps; ++step)
      losses.push_back(Step(*model, step)["loss"].floats()[0]);
    return losses;
  }

  driver::TrainOptions train_;
  GoldenTraining golden_;
  std::unique_ptr<CompiledModel> model_;
};

TEST_P(OptimizersTest, EqualsPlainLoops) {
  ASSERT_TRUE(model_);
  std::map<std::string, Reference> references;
  for (const auto& [name, gradient] : golden_.gradients) {
    auto parameter = model_->ReadParameter(name);
    ASSERT_TRUE(parameter.ok()) << parameter.status();
    references.try_emplace(name, train_, parameter->shape,
                           ToNumbers(*parameter), absl::EndsWith(name, "bias"));
  }
  ASSERT_FALSE(references.empty());
  const bool divided = GetParam().division.mesh[0] != '\0';
  for (int step = 1; step <= kSteps; ++step) {
    auto outputs = Step(*model_, step);
    ASSERT_TRUE(outputs.count("loss"));
    for (auto& [name, reference] : references)
      reference.Step(ToNumbers(outputs[absl::StrCat("grad.", name)]), step);
    if (divided)
      EXPECT_NEAR(outputs["loss"].floats()[0], Undivided().at(step - 1), 1e-4)
          << "step " << step;
  }
  for (const auto& [name, reference] : references) {
    auto parameter = model_->ReadParameter(name);
    ASSERT_TRUE(parameter.ok()) << parameter.status();
    for (int64_t i = 0; i < parameter->elements(); ++i)
      ASSERT_NEAR(parameter->floats()[i], reference.value()[i],
                  1e-6 + 1e-5 * std::abs(reference.value()[i]))
          << name << ", element " << i;
    if (train_.optimizer != "1bit-lamb") continue;
    auto ratio = model_->ReadParameter(name + "/ratio");
    ASSERT_TRUE(ratio.ok()) << ratio.status();
    EXPECT_TRUE(ratio->shape.empty());
    EXPECT_NEAR(ratio->floats()[0], reference.ratio(), 1e-4 * reference.ratio())
        << name;
  }
}

constexpr Chosen kSgd = {"Sgd", "sgd"}, kMomentum = {"Momentum", "sgd", 0.9},
                 kNesterov = {"Nesterov", "sgd", 0.9, true},
                 kAdam = {"Adam", "adam"}, kLamb = {"Lamb", "lamb"},
                 kOneBitLamb = {"OneBitLamb", "1bit-lamb"},
                 kAdafactor = {"Adafactor", "adafactor"},
                 kGroups = {"Groups", "adamw", 0, false, true};
constexpr Division kWhole = {"Whole", "", ""}, kB2 = {"B2", "d=2", "B=d"},
                   kB3 = {"B3", "d=3", "B=d"},
                   kMN2 = {"MNV2", "t=2", "M=t,N=t,V=t"},
                   kMN3 = {"MNV3", "t=3", "M=t,N=t,V=t"};

INSTANTIATE_TEST_SUITE_P(
    All, OptimizersTest,
    testing::Values(
        Case{"gpt2", kSgd, kWhole}, Case{"gpt2", kMomentum, kWhole},
        Case{"gpt2", kNesterov, kWhole}, Case{"gpt2", kNesterov, kB2, 3},
        Case{"gpt2", kAdam, kWhole}, Case{"gpt2", kAdam, kB2, 1},
        Case{"gpt2", kGroups, kWhole}, Case{"gpt2", kGroups, kB2, 1},
        Case{"gpt2", kLamb, kWhole}, Case{"gpt2", kLamb, kMN2},
        Case{"gpt2", kLamb, kB2, 1}, Case{"gpt2", kLamb, kB2, 3},
        Case{"gpt2", kLamb, kB3, 1}, Case{"gpt2", kLamb, kMN3},
        Case{"gpt2", kOneBitLamb, kWhole}, Case{"gpt2", kOneBitLamb, kMN2},
        Case{"gpt2", kOneBitLamb, kB2, 1}, Case{"gpt2", kAdafactor, kWhole},
        Case{"gpt2", kAdafactor, kMN2}, Case{"gpt2", kAdafactor, kB2, 1},
        Case{"gpt2", kAdafactor, kB2, 3}, Case{"gpt2", kAdafactor, kB3, 1},
        Case{"gpt2", kAdafactor, kMN3}, Case{"coatnet_64", kAdafactor, kWhole},
        Case{"coatnet_64", kAdafactor, kB2, 1}),
    [](const testing::TestParamInfo<Case>& info) {
      return absl::StrCat(
          info.param.model, "_", info.param.chosen.name, "_",
          info.param.division.name,
          info.param.zero > 0 ? absl::StrCat("Zero", info.param.zero) : "");
    });

// Optimizer states have the shapes of the model's own parameters, even if the
// compiler views them differently: packed projections are one matrix.
TEST(AdafactorTest, KeepsRowsAndColumnsOfTheModelsMatrices) {
  const std::string folder = "tests/data/onnx-tiny/gpt2/";
  auto golden = ReadGoldenTraining(folder);
  ASSERT_TRUE(golden.ok()) << golden.status();
  driver::TrainOptions train;
  train.optimizer = "adafactor";
  for (const Division& division : {kWhole, kMN2}) {
    driver::ImportOptions options;
    for (const auto& [name, tensor] : golden->inputs)
      options.input_shapes[name] = tensor.shape;
    CompilerContext context;
    auto module = driver::importModel(folder + "model_train.onnx", options,
                                      context.get());
    ASSERT_TRUE(module) << context.errors;
    std::optional<plan::Plan> plan;
    if (division.mesh[0] != '\0') {
      plan = *PlanOf(division);
    }
    auto model = CompiledModel::MakeTraining(*module, testing::TempDir(),
                                             "rows", plan, train);
    ASSERT_TRUE(model.ok()) << model.status();
    int matrices = 0;
    for (const auto& [name, gradient] : golden->gradients) {
      if (gradient.shape.size() != 2) continue;
      ++matrices;
      auto rows = (*model)->ReadParameter(name + "/exp_avg_sq_row"),
           columns = (*model)->ReadParameter(name + "/exp_avg_sq_col");
      ASSERT_TRUE(rows.ok()) << rows.status();
      ASSERT_TRUE(columns.ok()) << columns.status();
      EXPECT_EQ(rows->shape, std::vector<int64_t>{gradient.shape[0]}) << name;
      EXPECT_EQ(columns->shape, std::vector<int64_t>{gradient.shape[1]})
          << name;
    }
    EXPECT_GT(matrices, 4);
  }
}

}  // namespace
}  // namespace partita::e2e
