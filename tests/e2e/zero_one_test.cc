// Compares 50 steps of 0/1 Adam on several devices with plain loops in double
// precision, in which every worker has parameters, momenta and sums of its own,
// as in the paper's algorithm 1: losses, and all parameters and states.
#include "compiler/driver/zero_one.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "compiler/plan/plan.h"
#include "gtest/gtest.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"
#include "runtime/session/open_ranks.h"
#include "runtime/session/zero_one.h"
#include "tests/e2e/compiled_model.h"

namespace partita::e2e {
namespace {

using Numbers = std::vector<double>;
using train::ZeroOneStep;

// The bias is the first kOut elements of a table, as position embeddings are
// the first rows of theirs.
constexpr int64_t kBatch = 8, kIn = 24, kOut = 20, kTable = 28, kSteps = 50;
constexpr double kBeta1 = 0.9, kBeta2 = 0.999, kEpsilon = 1e-8, kDecay = 0.1;

// Variance updates in steps 1 to 5, 7, 9 and 11; after step 12, 38 steps with
// intervals of 1, 2 and 4 between exchanges, 10 of each.
constexpr train::ZeroOneSchedule kSchedule = {kSteps, 12, 4, 4, 10};

// The mean of the squares of x w + b.
constexpr char kModel[] = R"(
func.func @main(%x: tensor<8x24xf32> {nn.kind = "input", nn.name = "x"},
                %w: tensor<24x20xf32> {nn.kind = "parameter", nn.name = "w", nn.source = #nn.init<"normal", 1.0 : f64, 3>},
                %table: tensor<28xf32> {nn.kind = "parameter", nn.name = "b", nn.source = #nn.init<"normal", 1.0 : f64, 4>})
    -> (tensor<f32> {nn.name = "loss"}) {
  %0 = nn.dot_general %x, %w contract = [1] x [0] : tensor<8x24xf32>, tensor<24x20xf32> -> tensor<8x20xf32>
  %b = nn.slice %table starts = [0] strides = [1] : tensor<28xf32> -> tensor<20xf32>
  %1 = nn.broadcast %b dims = [1] : tensor<20xf32> -> tensor<8x20xf32>
  %y = arith.addf %0, %1 : tensor<8x20xf32>
  %s = arith.mulf %y, %y : tensor<8x20xf32>
  %sum = nn.reduce sum %s dims = [0, 1] : tensor<8x20xf32> -> tensor<f32>
  %share = arith.constant dense<6.25e-3> : tensor<f32>
  %loss = arith.mulf %sum, %share : tensor<f32>
  return %loss : tensor<f32>
}
)";

double RateOf(int64_t step) {
  return static_cast<float>(1e-2 / (1 + 0.02 * static_cast<double>(step)));
}

Numbers InputOf(int64_t step) {
  Numbers x(kBatch * kIn);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>(
        std::sin(static_cast<double>(i * i + 13 * i) + 0.7 * step));
  return x;
}

// One parameter on n workers.
class Reference {
 public:
  Reference(const Numbers& value, int64_t n)
      : n_(n),
        chunk_((static_cast<int64_t>(value.size()) + 32 * n - 1) / (32 * n) *
               32),
        last_(value),
        variance_(value.size()),
        own_(n, value),
        momenta_(n, Numbers(value.size())),
        sums_(n, Numbers(value.size())),
        worker_errors_(n, Numbers(n * chunk_)),
        server_error_(n * chunk_) {}

  const Numbers& own(int64_t worker) const { return own_[worker]; }
  const Numbers& last() const { return last_; }
  const Numbers& variance() const { return variance_; }
  const Numbers& server_error() const { return server_error_; }
  Numbers momenta() const { return Joined(momenta_); }
  Numbers sums() const { return Joined(sums_); }
  Numbers worker_errors() const { return Joined(worker_errors_); }

  // `gradients` has each worker's gradient of the mean over its rows, at its
  // own parameters.
  void Step(const std::vector<Numbers>& gradients, int64_t t,
            ZeroOneStep kind) {
    const double c1 = 1 / (1 - std::pow(kBeta1, t));
    if (kind == ZeroOneStep::kVariance) return StepTogether(gradients, t, c1);
    const double rate = RateOf(t);
    rates_ += rate, corrected_rates_ += rate * c1;
    for (int64_t worker = 0; worker < n_; ++worker)
      for (int64_t i = 0; i < Size(); ++i) {
        double& m = momenta_[worker][i];
        m = kBeta1 * m + (1 - kBeta1) * gradients[worker][i];
        own_[worker][i] -= Divided(rate * c1 * m, i) + rate * kDecay * last_[i];
        sums_[worker][i] += rate * c1 * m;
      }
    if (kind == ZeroOneStep::kExchange) Exchange();
  }

 private:
  int64_t Size() const { return static_cast<int64_t>(last_.size()); }

  static Numbers Joined(const std::vector<Numbers>& rows) {
    Numbers all;
    for (const Numbers& row : rows)
      all.insert(all.end(), row.begin(), row.end());
    return all;
  }

  // x / (sqrt(V) + epsilon); 0 where V is 0.
  double Divided(double x, int64_t i) const {
    const double c2 = 1 / (1 - std::pow(kBeta2, variance_steps_));
    return variance_[i] > 0 ? x / (std::sqrt(variance_[i] * c2) + kEpsilon) : 0;
  }

  // AdamW on the mean gradient.
  void StepTogether(const std::vector<Numbers>& gradients, int64_t t,
                    double c1) {
    ++variance_steps_;
    for (int64_t i = 0; i < Size(); ++i) {
      double g = 0;
      for (const Numbers& gradient : gradients) g += gradient[i] / n_;
      const double m = kBeta1 * momenta_[0][i] + (1 - kBeta1) * g;
      variance_[i] = kBeta2 * variance_[i] + (1 - kBeta2) * g * g;
      last_[i] -= RateOf(t) * (Divided(c1 * m, i) + kDecay * last_[i]);
      for (int64_t worker = 0; worker < n_; ++worker)
        momenta_[worker][i] = m, own_[worker][i] = last_[i];
    }
  }

  void Exchange() {
    const Numbers mean = Mean();
    for (int64_t i = 0; i < Size(); ++i) {
      last_[i] -= Divided(mean[i], i) + rates_ * kDecay * last_[i];
      for (int64_t worker = 0; worker < n_; ++worker) {
        momenta_[worker][i] = mean[i] / corrected_rates_;
        sums_[worker][i] = 0;
        own_[worker][i] = last_[i];
      }
    }
    rates_ = corrected_rates_ = 0;
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

  // The 1-bit all-reduce of the sums.
  Numbers Mean() {
    Numbers result(n_ * chunk_);
    for (int64_t k = 0; k < n_; ++k) {
      const int64_t first = k * chunk_;
      Numbers mean(chunk_);
      for (int64_t worker = 0; worker < n_; ++worker) {
        Numbers own(chunk_);
        for (int64_t i = 0; i < chunk_ && first + i < Size(); ++i)
          own[i] = sums_[worker][first + i] + worker_errors_[worker][first + i];
        own = Compress(k, own, &worker_errors_[worker][first]);
        for (int64_t i = 0; i < chunk_; ++i) mean[i] += own[i] / n_;
      }
      for (int64_t i = 0; i < chunk_; ++i) mean[i] += server_error_[first + i];
      mean = Compress(k, mean, &server_error_[first]);
      std::copy(mean.begin(), mean.end(), result.begin() + first);
    }
    return result;
  }

  const int64_t n_, chunk_;
  Numbers last_, variance_;
  std::vector<Numbers> own_, momenta_, sums_, worker_errors_;
  Numbers server_error_;
  double rates_ = 0, corrected_rates_ = 0;
  int64_t variance_steps_ = 0;
};

// The loss of a worker's rows, and its gradients.
struct Work {
  double loss = 0;
  Numbers w = Numbers(kIn * kOut), b = Numbers(kTable);
};

Work WorkOf(const Numbers& x, const Numbers& w, const Numbers& b, int64_t first,
            int64_t rows) {
  Work work;
  for (int64_t row = first; row < first + rows; ++row)
    for (int64_t j = 0; j < kOut; ++j) {
      double y = b[j];
      for (int64_t i = 0; i < kIn; ++i) y += x[row * kIn + i] * w[i * kOut + j];
      const double share = y / static_cast<double>(rows * kOut);
      work.loss += y * share;
      work.b[j] += 2 * share;
      for (int64_t i = 0; i < kIn; ++i)
        work.w[i * kOut + j] += 2 * share * x[row * kIn + i];
    }
  return work;
}

struct Case {
  const char* name;
  const char* mesh;
  const char* shard;
  int64_t devices;  // along the axes of B
};

class ZeroOneTest : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    const Case& given = GetParam();
    CompilerContext context;
    auto module =
        mlir::parseSourceString<mlir::ModuleOp>(kModel, context.get());
    ASSERT_TRUE(module) << context.errors;
    driver::CompileOptions options;
    options.output = testing::TempDir() + "/" + given.name;
    options.plan.emplace();
    options.plan->mesh = *plan::ParseMeshOption(given.mesh);
    options.plan->shard =
        *plan::ParseShardOption(given.shard, options.plan->mesh);
    options.plan->names = {{"x", 0, "B"}, {"w", 1, "M"}};
    options.train.optimizer = "0/1-adam";
    options.train.loss = "none";
    options.train.weight_decay = kDecay;
    driver::Fault fault;
    ASSERT_TRUE(
        mlir::succeeded(driver::compileZeroOne(*module, options, fault)))
        << context.errors;
    session::SessionOptions session;
    session.threads = 1;
    const executor::RankGroup* states = nullptr;
    for (const ZeroOneStep step :
         {ZeroOneStep::kExchange, ZeroOneStep::kVariance,
          ZeroOneStep::kLocal}) {
      session.model = session::ZeroOnePath(options.output, step);
      auto ranks = session::OpenAllRanks(session, states);
      ASSERT_TRUE(ranks.ok()) << ranks.status();
      ranks_.push_back(*std::move(ranks));
      states = ranks_[0].get();
    }
    auto stepper = session::ZeroOneStepper::Make(
        *ranks_[0], *ranks_[1], *ranks_[2], kSchedule, /*traced=*/false,
        [](const std::string&) {});
    ASSERT_TRUE(stepper.ok()) << stepper.status();
    stepper_ = *std::move(stepper);
  }

  Numbers Read(const std::string& name) {
    for (const executor::ParameterSpec& spec : ranks_[0]->parameters()) {
      if (spec.whole.name != name) continue;
      std::vector<float> values(spec.whole.bytes / sizeof(float));
      EXPECT_TRUE(ranks_[0]
                      ->ReadParameter(name, {spec.whole.dtype, spec.whole.shape,
                                             values.data()})
                      .ok());
      return {values.begin(), values.end()};
    }
    ADD_FAILURE() << "no parameter " << name;
    return {};
  }

  double Run(const Numbers& x, int64_t step) {
    std::vector<float> input(x.begin(), x.end());
    const auto rate = static_cast<float>(RateOf(step));
    float loss = 0;
    std::vector<base::ConstTensor> inputs;
    for (size_t i = 0; i < stepper_->inputs().size(); ++i) {
      const base::TensorSpec& spec = stepper_->inputs()[i];
      const void* data = input.data();
      if (stepper_->RoleOf(i) == program::PortRole::learning_rate) data = &rate;
      if (stepper_->RoleOf(i) == program::PortRole::step) data = &step;
      inputs.push_back({spec.dtype, spec.shape, data});
    }
    const base::TensorSpec& output = stepper_->outputs()[0];
    const absl::Status status =
        stepper_->Run(inputs, {{output.dtype, output.shape, &loss}});
    EXPECT_TRUE(status.ok()) << status;
    return loss;
  }

  void Compare(const std::string& name, const Numbers& expected, int64_t step) {
    const Numbers found = Read(name);
    ASSERT_EQ(found.size(), expected.size()) << name;
    for (size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(found[i], expected[i], 2e-6 + 2e-5 * std::abs(expected[i]))
          << name << ", element " << i << ", step " << step;
  }

  std::vector<std::unique_ptr<executor::RankGroup>> ranks_;
  std::unique_ptr<session::ZeroOneStepper> stepper_;
};

TEST_P(ZeroOneTest, EqualsPlainLoops) {
  const int64_t n = GetParam().devices, rows = kBatch / n;
  Reference w(Read("w"), n), b(Read("b"), n);
  int64_t kinds[3] = {};
  for (int64_t step = 1; step <= kSteps; ++step) {
    const ZeroOneStep kind = train::KindOf(kSchedule, step);
    ++kinds[static_cast<int>(kind)];
    const Numbers x = InputOf(step);
    double loss = 0;
    std::vector<Numbers> of_w, of_b;
    for (int64_t worker = 0; worker < n; ++worker) {
      Work work = WorkOf(x, w.own(worker), b.own(worker), worker * rows, rows);
      loss += work.loss / static_cast<double>(n);
      of_w.push_back(std::move(work.w)), of_b.push_back(std::move(work.b));
    }
    EXPECT_NEAR(Run(x, step), loss, 2e-6 + 1e-5 * loss) << "step " << step;
    w.Step(of_w, step, kind), b.Step(of_b, step, kind);
    for (auto& [name, reference] :
         {std::pair<std::string, Reference&>("w", w), {"b", b}}) {
      Compare(name, reference.last(), step);
      Compare(name + "/exp_avg_sq", reference.variance(), step);
      Compare(name + "/local_exp_avg", reference.momenta(), step);
      Compare(name + "/local_sum", reference.sums(), step);
      Compare(name + "/sum_worker_error", reference.worker_errors(), step);
      Compare(name + "/sum_server_error", reference.server_error(), step);
    }
    if (HasFatalFailure()) return;
  }
  EXPECT_EQ(kinds[static_cast<int>(ZeroOneStep::kVariance)], 8);
  EXPECT_EQ(kinds[static_cast<int>(ZeroOneStep::kLocal)], 18);
}

INSTANTIATE_TEST_SUITE_P(
    All, ZeroOneTest,
    testing::Values(Case{"Two", "d=2", "B=d", 2}, Case{"Four", "d=4", "B=d", 4},
                    Case{"TwoByTwo", "c=2,d=2", "B=c+d", 4},
                    Case{"WithWidth", "d=2,t=2", "B=d;M=t", 2}),
    [](const testing::TestParamInfo<Case>& info) {
      return std::string(info.param.name);
    });

}  // namespace
}  // namespace partita::e2e
