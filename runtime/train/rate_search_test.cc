// Suggested rates of losses with known slopes.
#include "runtime/train/rate_search.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"

namespace partita::train {
namespace {

StepRecord Record(int64_t step, double loss) {
  StepRecord record;
  record.step = step;
  record.loss = loss;
  record.rate = static_cast<double>(step);
  return record;
}

// A constant loss has the smoothed losses 3, so that the moving average has no
// bias at its beginning; nothing falls, and the first rate is suggested.
TEST(RateSearchTest, ConstantLosses) {
  RateSearch test;
  for (int64_t step = 1; step <= 30; ++step)
    ASSERT_TRUE(test.OnStep(Record(step, 3)).ok());
  EXPECT_FALSE(test.Diverged());
  ASSERT_TRUE(test.SuggestRate());
  EXPECT_GE(*test.SuggestRate(), 11);
}

// Losses 5 - 2 / (1 + exp(-(s - 50) / 5)) + exp((s - 110) / 6). The suggested
// step is the one that numpy.gradient(smoothed[10:-1]).argmin() finds.
TEST(RateSearchTest, SteepestDescent) {
  RateSearch test;
  int64_t step = 1;
  for (; step <= 200 && !test.Diverged(); ++step) {
    const double s = static_cast<double>(step);
    ASSERT_TRUE(test.OnStep(Record(step, 5 - 2 / (1 + std::exp(-(s - 50) / 5)) +
                                             std::exp((s - 110) / 6)))
                    .ok());
  }
  EXPECT_EQ(step - 1, 137);
  ASSERT_TRUE(test.SuggestRate());
  EXPECT_EQ(*test.SuggestRate(), 59);
}

TEST(RateSearchTest, TooFewLosses) {
  RateSearch test;
  for (int64_t step = 1; step <= 12; ++step)
    ASSERT_TRUE(test.OnStep(Record(step, 3)).ok());
  ASSERT_TRUE(
      test.OnStep(Record(13, std::numeric_limits<double>::quiet_NaN())).ok());
  EXPECT_FALSE(test.SuggestRate());
  ASSERT_TRUE(test.OnStep(Record(14, 2)).ok());
  EXPECT_TRUE(test.SuggestRate());
}

// Losses that are not known yet are no divergence; later ones are.
TEST(RateSearchTest, LossesThatAreNotFinite) {
  for (const double loss : {std::numeric_limits<double>::quiet_NaN(),
                            std::numeric_limits<double>::infinity()}) {
    RateSearch test;
    ASSERT_TRUE(
        test.OnStep(Record(1, std::numeric_limits<double>::quiet_NaN())).ok());
    EXPECT_FALSE(test.Diverged());
    for (int64_t step = 2; step <= 30; ++step)
      ASSERT_TRUE(
          test.OnStep(Record(step, 3 - 0.01 * static_cast<double>(step))).ok());
    EXPECT_FALSE(test.Diverged());
    ASSERT_TRUE(test.OnStep(Record(31, loss)).ok());
    EXPECT_TRUE(test.Diverged());
    ASSERT_TRUE(test.SuggestRate());
    EXPECT_LE(*test.SuggestRate(), 30);
  }
}

}  // namespace
}  // namespace partita::train
