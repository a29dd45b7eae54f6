// Gradients with a known mean and covariance: the closed form is tr / |G|^2.
#include "runtime/train/noise_scale.h"

#include <cmath>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace partita::train {
namespace {

// The formulas of compiler/autodiff/noise_scale.cc.
StepRecord RecordOf(const std::vector<std::vector<double>>& gradients,
                    int64_t examples) {
  const auto m = static_cast<double>(gradients.size());
  std::vector<double> mean(gradients[0].size());
  double small = 0, big = 0;
  for (const std::vector<double>& each : gradients)
    for (size_t i = 0; i < mean.size(); ++i) {
      small += each[i] * each[i] / (m * m);
      mean[i] += each[i] / m;
    }
  for (const double x : mean) big += x * x;
  StepRecord record;
  record.examples = examples;
  record.scalars = {{"gradient_noise", (m * small - big) / (m - 1)},
                    {"gradient_signal", m * (big - small) / (m - 1)}};
  return record;
}

TEST(NoiseScaleTest, ClosedForm) {
  constexpr int kSteps = 4000, kSize = 50;
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  std::vector<double> truth(kSize), deviation(kSize);
  double square = 0, trace = 0;
  for (int i = 0; i < kSize; ++i) {
    truth[static_cast<size_t>(i)] = 0.1 * i;
    deviation[static_cast<size_t>(i)] = 1 + 0.3 * (i % 7);
    square += std::pow(0.1 * i, 2);
    trace += std::pow(deviation[static_cast<size_t>(i)], 2);
  }
  // Batches of different sizes, divided into different microbatches.
  for (const auto& [microbatches, examples] :
       {std::pair(2, 4), std::pair(4, 8), std::pair(16, 16)}) {
    NoiseScale scale;
    double noise = 0, signal = 0;
    EXPECT_FALSE(scale.Measured());
    for (int step = 0; step < kSteps; ++step) {
      std::vector<std::vector<double>> gradients;
      for (int k = 0; k < microbatches; ++k) {
        std::vector<double> gradient(kSize);
        const double spread = std::sqrt(microbatches / double(examples));
        for (size_t i = 0; i < kSize; ++i)
          gradient[i] = truth[i] + spread * deviation[i] * normal(random);
        gradients.push_back(std::move(gradient));
      }
      const StepRecord record = RecordOf(gradients, examples);
      ASSERT_TRUE(scale.OnStep(record).ok());
      noise += record.scalars[0].second / kSteps;
      signal += record.scalars[1].second / kSteps;
    }
    // Without a bias, at every size of batch.
    EXPECT_NEAR(noise * examples / trace, 1, 0.01) << microbatches;
    EXPECT_NEAR(signal / square, 1, 0.01) << microbatches;
    ASSERT_TRUE(scale.Examples().has_value());
    EXPECT_NEAR(*scale.Examples() / (trace / square), 1, 0.05) << microbatches;
  }
}

TEST(NoiseScaleTest, NothingWithoutMeasurements) {
  NoiseScale scale;
  StepRecord record;
  record.scalars = {{"grad_norm", 3}};
  ASSERT_TRUE(scale.OnStep(record).ok());
  EXPECT_FALSE(scale.Measured());
  EXPECT_FALSE(scale.Examples().has_value());
}

// Where the true gradient vanishes, its estimate may be negative.
TEST(NoiseScaleTest, NothingFromNoiseAlone) {
  NoiseScale scale;
  ASSERT_TRUE(scale.OnStep(RecordOf({{1, 0}, {-1, 0}}, 2)).ok());
  EXPECT_TRUE(scale.Measured());
  EXPECT_FALSE(scale.Examples().has_value());
}

// Estimates follow a change of the noise.
TEST(NoiseScaleTest, ForgetsThePast) {
  NoiseScale scale;
  StepRecord record;
  record.examples = 10;
  record.scalars = {{"gradient_noise", 1}, {"gradient_signal", 1}};
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(scale.OnStep(record).ok());
  EXPECT_NEAR(*scale.Examples(), 10, 1e-9);
  record.scalars[0].second = 3;
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(scale.OnStep(record).ok());
  EXPECT_NEAR(*scale.Examples(), 30, 0.1);
}

}  // namespace
}  // namespace partita::train
