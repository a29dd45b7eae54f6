// Compares 1-bit Adam and LAMB on several devices with plain loops in double
// precision that implement the papers' exchange: parameters, states and both
// compression errors.
#include <algorithm>
#include <cmath>

#include "compiler/plan/plan.h"
#include "gtest/gtest.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"
#include "tests/e2e/compiled_model.h"

namespace partita::e2e {
namespace {

using Numbers = std::vector<double>;

constexpr int64_t kBatch = 8, kIn = 24, kOut = 20, kWarmup = 7, kSteps = 6;
constexpr double kRate = 1e-2, kBeta1 = 0.9, kBeta2 = 0.999, kEpsilon = 1e-8,
                 kDecay = 0.1, kRatio = 0.3;

// The mean of the squares of x w + b.
constexpr char kModel[] = R"(
func.func @main(%x: tensor<8x24xf32> {nn.kind = "input", nn.name = "x"},
                %w: tensor<24x20xf32> {nn.kind = "parameter", nn.name = "w", nn.source = #nn.init<"normal", 1.0 : f64, 3>},
                %b: tensor<20xf32> {nn.kind = "parameter", nn.name = "b", nn.source = #nn.init<"normal", 1.0 : f64, 4>})
    -> (tensor<f32> {nn.name = "loss"}) {
  %0 = nn.dot_general %x, %w contract = [1] x [0] : tensor<8x24xf32>, tensor<24x20xf32> -> tensor<8x20xf32>
  %1 = nn.broadcast %b dims = [1] : tensor<20xf32> -> tensor<8x20xf32>
  %y = arith.addf %0, %1 : tensor<8x20xf32>
  %s = arith.mulf %y, %y : tensor<8x20xf32>
  %sum = nn.reduce sum %s dims = [0, 1] : tensor<8x20xf32> -> tensor<f32>
  %share = arith.constant dense<6.25e-3> : tensor<f32>
  %loss = arith.mulf %sum, %share : tensor<f32>
  return %loss : tensor<f32>
}
)";

HostTensor Tensor(base::DType dtype, std::vector<int64_t> shape,
                  const void* data, size_t bytes) {
  return {dtype, std::move(shape),
          std::string(static_cast<const char*>(data), bytes)};
}

HostTensor Floats(std::vector<int64_t> shape, const Numbers& values) {
  const std::vector<float> floats(values.begin(), values.end());
  return Tensor(base::DType::kF32, std::move(shape), floats.data(),
                floats.size() * sizeof(float));
}

Numbers ToNumbers(const HostTensor& tensor) {
  return {tensor.floats(), tensor.floats() + tensor.elements()};
}

Numbers InputOf(int64_t step) {
  Numbers x(kBatch * kIn);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>(
        std::sin(static_cast<double>(i * i + 13 * i) + 0.7 * step));
  return x;
}

// One parameter on n devices.
class Reference {
 public:
  Reference(Numbers value, Numbers variance, int64_t n, bool lamb)
      : lamb_(lamb),
        value_(std::move(value)),
        variance_(std::move(variance)),
        fresh_(variance_),
        n_(n),
        chunk_((Size() + 32 * n - 1) / (32 * n) * 32),
        momentum_(Size()),
        worker_errors_(n, Numbers(n * chunk_)),
        server_error_(n * chunk_) {}

  const Numbers& value() const { return value_; }
  const Numbers& momentum() const { return momentum_; }
  const Numbers& server_error() const { return server_error_; }
  const Numbers& fresh() const { return fresh_; }
  double factor() const { return factor_; }
  Numbers worker_error() const {
    Numbers all;
    for (const Numbers& error : worker_errors_)
      all.insert(all.end(), error.begin(), error.end());
    return all;
  }

  // `gradients` has each device's gradient of the mean over its rows.
  void Step(const std::vector<Numbers>& gradients, int64_t t) {
    const Numbers before = momentum_;
    n_ == 1 ? Average(gradients[0]) : Exchange(gradients);
    const double rate = lamb_ ? kRate * RatioOf(before, t) : kRate;
    const double c1 = 1 / (1 - std::pow(kBeta1, t)),
                 c2 = 1 / std::sqrt(1 - std::pow(kBeta2, kWarmup));
    for (int64_t i = 0; i < Size(); ++i) {
      const double direction =
          variance_[i] > 0
              ? momentum_[i] * c1 / (std::sqrt(variance_[i]) * c2 + kEpsilon)
              : 0;
      value_[i] -= rate * (direction + kDecay * value_[i]);
    }
  }

 private:
  double RatioOf(const Numbers& before, int64_t t) {
    double factor = 0;
    for (int64_t i = 0; i < Size(); ++i) {
      const double g = (momentum_[i] - kBeta1 * before[i]) / (1 - kBeta1);
      fresh_[i] = kBeta2 * fresh_[i] + (1 - kBeta2) * g * g;
      const auto corrected = [](double v, int64_t steps) {
        return std::sqrt(v / (1 - std::pow(kBeta2, steps))) + kEpsilon;
      };
      if (variance_[i] > 0)
        factor = std::max(
            factor, corrected(variance_[i], kWarmup) / corrected(fresh_[i], t));
    }
    factor = std::clamp(factor, 0.9 * factor_, 1.1 * factor_);
    factor_ = std::clamp(factor, 0.5, 4.0);
    return factor_ * kRatio / (1 - std::pow(0.9, kWarmup));
  }

  int64_t Size() const { return static_cast<int64_t>(value_.size()); }

  double Momentum(int64_t i, const Numbers& gradient) const {
    return kBeta1 * momentum_[i] + (1 - kBeta1) * gradient[i];
  }
  void Average(const Numbers& gradient) {
    for (int64_t i = 0; i < Size(); ++i) momentum_[i] = Momentum(i, gradient);
  }

  // The compressed elements of a chunk, which are sent; the remainder stays in
  // `error`.
  Numbers Compress(int64_t chunk, Numbers x, double* error) const {
    const int64_t first = chunk * chunk_,
                  count = std::clamp<int64_t>(Size() - first, 0, chunk_);
    double scale = 0;
    for (int64_t i = 0; i < count; ++i) scale += std::abs(x[i]) / count;
    for (int64_t i = 0; i < count; ++i) {
      const double sent = x[i] >= 0 ? scale : -scale;
      error[i] = x[i] - sent;
      x[i] = sent;
    }
    return x;
  }

  void Exchange(const std::vector<Numbers>& gradients) {
    Numbers next(n_ * chunk_);
    for (int64_t k = 0; k < n_; ++k) {
      const int64_t first = k * chunk_;
      Numbers mean(chunk_);
      for (int64_t device = 0; device < n_; ++device) {
        Numbers own(chunk_);
        for (int64_t i = 0; i < chunk_ && first + i < Size(); ++i)
          own[i] = Momentum(first + i, gradients[device]) +
                   worker_errors_[device][first + i];
        own = Compress(k, own, &worker_errors_[device][first]);
        for (int64_t i = 0; i < chunk_; ++i) mean[i] += own[i] / n_;
      }
      for (int64_t i = 0; i < chunk_; ++i) mean[i] += server_error_[first + i];
      mean = Compress(k, mean, &server_error_[first]);
      std::copy(mean.begin(), mean.end(), next.begin() + first);
    }
    std::copy(next.begin(), next.begin() + Size(), momentum_.begin());
  }

  const bool lamb_;
  Numbers value_;
  const Numbers variance_;
  Numbers fresh_;
  double factor_ = 1;
  const int64_t n_, chunk_;
  Numbers momentum_;
  std::vector<Numbers> worker_errors_;
  Numbers server_error_;
};

struct Case {
  const char* name;
  const char* mesh;
  const char* shard;
  int64_t devices;  // along the axes of B
  bool lamb = false;
};

class OneBitTest : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    const Case& given = GetParam();
    CompilerContext context;
    auto module =
        mlir::parseSourceString<mlir::ModuleOp>(kModel, context.get());
    ASSERT_TRUE(module) << context.errors;
    std::optional<plan::Plan> plan;
    if (given.mesh[0] != '\0') {
      plan.emplace();
      plan->mesh = *plan::ParseMeshOption(given.mesh);
      plan->shard = *plan::ParseShardOption(given.shard, plan->mesh);
      plan->names = {{"x", 0, "B"}};
    }
    driver::TrainOptions train;
    train.optimizer = given.lamb ? "1bit-lamb" : "1bit-adam";
    train.onebit_warmup = kWarmup;
    train.loss = "none";
    train.weight_decay = kDecay;
    auto compiled = CompiledModel::MakeTraining(*module, testing::TempDir(),
                                                given.name, plan, train);
    ASSERT_TRUE(compiled.ok()) << compiled.status() << context.errors;
    model_ = *std::move(compiled);
  }

  Reference Begin(const std::string& name) {
    auto value = model_->ReadParameter(name);
    EXPECT_TRUE(value.ok()) << value.status();
    Numbers variance(value->elements());
    for (size_t i = 0; i < variance.size(); ++i)
      variance[i] = static_cast<float>(1e-4 * static_cast<double>(i % 7));
    EXPECT_TRUE(model_
                    ->WriteParameter(name + "/exp_avg_sq",
                                     Floats(value->shape, variance))
                    .ok());
    const bool lamb = GetParam().lamb;
    if (lamb)
      EXPECT_TRUE(
          model_->WriteParameter(name + "/ratio", Floats({}, {kRatio})).ok());
    return Reference(ToNumbers(*value), variance, GetParam().devices, lamb);
  }

  void Compare(const std::string& name, const Numbers& expected) {
    auto found = model_->ReadParameter(name);
    ASSERT_TRUE(found.ok()) << found.status();
    ASSERT_EQ(found->elements(), static_cast<int64_t>(expected.size())) << name;
    for (size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(found->floats()[i], expected[i],
                  2e-6 + 2e-5 * std::abs(expected[i]))
          << name << ", element " << i;
  }

  std::unique_ptr<CompiledModel> model_;
};

// The gradients of w and b, for the mean over `rows` rows from `first`.
std::pair<Numbers, Numbers> GradientsOf(const Numbers& x, const Numbers& w,
                                        const Numbers& b, int64_t first,
                                        int64_t rows) {
  std::pair<Numbers, Numbers> result(Numbers(kIn * kOut), Numbers(kOut));
  for (int64_t row = first; row < first + rows; ++row)
    for (int64_t j = 0; j < kOut; ++j) {
      double y = b[j];
      for (int64_t i = 0; i < kIn; ++i) y += x[row * kIn + i] * w[i * kOut + j];
      const double slope = 2 * y / static_cast<double>(rows * kOut);
      result.second[j] += slope;
      for (int64_t i = 0; i < kIn; ++i)
        result.first[i * kOut + j] += slope * x[row * kIn + i];
    }
  return result;
}

TEST_P(OneBitTest, EqualsPlainLoops) {
  const int64_t n = GetParam().devices, rows = kBatch / n;
  Reference w = Begin("w"), b = Begin("b");
  for (int64_t step = kWarmup + 1; step <= kWarmup + kSteps; ++step) {
    const Numbers x = InputOf(step);
    const float rate = kRate;
    auto outputs = model_->Run(
        {{"x", Floats({kBatch, kIn}, x)},
         {"lr", Tensor(base::DType::kF32, {}, &rate, sizeof(rate))},
         {"step", Tensor(base::DType::kI64, {}, &step, sizeof(step))}});
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    std::vector<Numbers> of_w, of_b;
    for (int64_t device = 0; device < n; ++device) {
      auto [in_w, in_b] =
          GradientsOf(x, w.value(), b.value(), device * rows, rows);
      of_w.push_back(in_w), of_b.push_back(in_b);
    }
    w.Step(of_w, step), b.Step(of_b, step);
  }
  for (auto& [name, reference] :
       {std::pair<std::string, Reference&>("w", w), {"b", b}}) {
    Compare(name, reference.value());
    Compare(name + "/exp_avg", reference.momentum());
    if (GetParam().lamb) {
      Compare(name + "/fresh_exp_avg_sq", reference.fresh());
      Compare(name + "/ratio_factor", {reference.factor()});
      Compare(name + "/ratio", {kRatio});
    }
    if (n == 1) {
      EXPECT_FALSE(model_->ReadParameter(name + "/worker_error").ok());
      continue;
    }
    Compare(name + "/worker_error", reference.worker_error());
    Compare(name + "/server_error", reference.server_error());
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, OneBitTest,
    testing::Values(Case{"Whole", "", "", 1}, Case{"Two", "d=2", "B=d", 2},
                    Case{"Four", "d=4", "B=d", 4},
                    Case{"TwoByTwo", "c=2,d=2", "B=c+d", 4},
                    Case{"LambWhole", "", "", 1, true},
                    Case{"LambTwo", "d=2", "B=d", 2, true},
                    Case{"LambFour", "d=4", "B=d", 4, true},
                    Case{"LambTwoByTwo", "c=2,d=2", "B=c+d", 4, true}),
    [](const testing::TestParamInfo<Case>& info) {
      return std::string(info.param.name);
    });

}  // namespace
}  // namespace partita::e2e
